"""Answers: small tables that add up, a day at a time."""
