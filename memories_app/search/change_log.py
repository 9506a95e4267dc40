"""The log of what changed among searched texts: see ``TextChange``."""

from __future__ import annotations

from datetime import datetime

from django.db import connection

from memories_app.models import TextChange
from memories_app.models.changes import EVERYTHING

# A process that has not read the log up to the last removed row must read its scopes anew, and
# finds that out by a row for every scope.
_PRUNE = """
WITH old AS (
    DELETE FROM {log} WHERE changed_at < %s AND NOT (scope = '' AND changed_in = (
        SELECT max(changed_in) FROM {log} WHERE scope = ''
    ))
    RETURNING changed_in
), last AS (
    SELECT least(max(changed_in), pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1)
        AS changed_in, count(*) AS number FROM old
)
INSERT INTO {log} (scope, changed_in) SELECT %s, changed_in FROM last WHERE number > 0
RETURNING (SELECT number FROM last)
"""


def changes_prune(*, before: datetime) -> int:
    """Remove older rows of the log; return how many."""
    statement = _PRUNE.format(log=TextChange._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(statement, [before, EVERYTHING])
        row = cursor.fetchone()
    return 0 if row is None else int(row[0])
