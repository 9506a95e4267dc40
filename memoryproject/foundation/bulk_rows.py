"""Write rows of several tables in few round trips to PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def sent_together() -> Iterator[None]:
    """Send the writes of the block one after the other, and wait for PostgreSQL once, at its end.

    Use it in a transaction, for writes that must succeed: how many rows an UPDATE changes isn't
    known in the block, and an error is raised by a later statement or the end. Within another such
    block it adds nothing.
    """
    if connection.connection.info.pipeline_status:
        yield
        return
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
