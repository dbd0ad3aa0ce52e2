"""The store of a partition in a PostgreSQL database, which it may share with others."""
