"""Stores: where the truth lies."""
