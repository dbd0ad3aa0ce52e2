"""The simulator: the same core, in virtual time."""
