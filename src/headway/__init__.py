"""Headway: a durable job queue that keeps its promises."""
