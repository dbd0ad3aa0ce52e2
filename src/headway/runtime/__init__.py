"""The owner of a partition: decides, commits, answers."""
