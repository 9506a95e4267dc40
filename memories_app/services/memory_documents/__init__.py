"""Memory documents in the database."""
