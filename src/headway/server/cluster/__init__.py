"""Several nodes that serve many partitions together."""
