"""Jobs found, shown and told of: an index of its own, fed from history."""
