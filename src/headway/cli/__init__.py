"""The command line: the only place that reads flags and environment."""
