"""The embedded PostgreSQL: started by whichever process needs it, in DATA_DIR, for us alone."""

from memoryproject.foundation.embedded_postgres.errors import EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.server import EmbeddedPostgres, embedded_postgres

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "embedded_postgres"]
