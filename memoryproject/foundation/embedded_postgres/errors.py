"""The error of the embedded server. Its text is for the person who runs the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL can't be used. The text states the cause, place and remedy."""


OWN_SERVER = "or set DATABASE_URL to a PostgreSQL server of your own"


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn an OSError of the block into an EmbeddedPostgresError: "Can't <action>: <reason>"."""
    try:
        yield
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise EmbeddedPostgresError(
            f"Can't {action}: {error.strerror or error}{place}. Make the place writable for the "
            f"user that runs this, with free space, or choose another DATA_DIR, {OWN_SERVER}."
        ) from error
