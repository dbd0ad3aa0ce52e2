"""Replays and sweeps on executors: a span of history, a grid, one point for each task."""
