"""A Django database backend: PostgreSQL, started when a connection needs it."""
