"""Handlers by subject; `table` lists all their routes."""
