"""Speed figures and their floors: `make bench` runs them all."""
