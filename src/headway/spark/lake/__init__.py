"""The tables: where they are, what they hold, and how a batch becomes visible."""
