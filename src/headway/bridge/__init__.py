"""Answers from outside systems, carried to the jobs that wait for them."""
