"""The server: HTTP in front, an owner behind, and what operators need around them."""
