"""History to tables, batch by batch: each is checked, and published whole or not at all."""
