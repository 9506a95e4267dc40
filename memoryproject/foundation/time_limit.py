"""Limit how long the queries of a search may take."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, OperationalError, transaction
from psycopg.errors import QueryCanceled

from memoryproject.foundation.replica import read_alias, read_connection


class TooSlowError(Exception):
    """The queries take too long: something narrower has to be asked for."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Limit the time of each query of the block, which only reads. Raises TooSlowError."""
    try:
        # Rolled back at the end: the limit ends with the transaction.
        with transaction.atomic(using=read_alias()):
            with read_connection().cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{seconds}s"])
            yield
            transaction.set_rollback(True, using=read_alias())
    except OperationalError as error:
        if read_alias() != DEFAULT_DB_ALIAS and not isinstance(error.__cause__, QueryCanceled):
            # The primary is asked instead.
            raise
        raise TooSlowError("It takes too long.") from error
