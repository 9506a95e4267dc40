"""The embedded PostgreSQL: started by whichever process needs it, in DATA_DIR, for us alone."""

from memoryproject.postgres.errors import EmbeddedPostgresError
from memoryproject.postgres.server import EmbeddedPostgres, embedded_postgres

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "embedded_postgres"]
