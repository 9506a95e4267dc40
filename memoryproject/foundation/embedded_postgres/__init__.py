"""The embedded PostgreSQL server in DATA_DIR.

The first process that needs it starts it. Only our own processes use it.
"""

from memoryproject.foundation.embedded_postgres.places import EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.server import EmbeddedPostgres, embedded_postgres

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "embedded_postgres"]
