"""A page about what happened: figures from the gold tables, drawn without any script."""
