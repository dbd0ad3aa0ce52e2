"""Headway beside other software; each module is imported by those who ask for it."""
