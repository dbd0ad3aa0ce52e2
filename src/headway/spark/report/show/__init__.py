"""Figures to markup: a section of the page in each module."""
