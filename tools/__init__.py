"""Scripts that build, check and document the project; never imported by it."""
