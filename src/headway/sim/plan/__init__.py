"""Recorded traffic and scenarios, run again under other workers and rules."""
