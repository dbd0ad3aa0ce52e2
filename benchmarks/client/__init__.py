"""The load generator: `load.c`, and `load.py` where there is no compiler."""
