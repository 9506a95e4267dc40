"""How PostgreSQL answers what was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext


def plans_of(queries: CaptureQueriesContext) -> list[dict[str, Any]]:
    """The plans of the statements that read something, with the settings under which they ran."""
    plans = []
    with connection.cursor() as cursor:
        before = _seqscan(cursor)
        for query in list(queries):
            sql = query["sql"]
            if "set_config(" in sql:
                cursor.execute(sql)
            elif sql.lstrip().startswith(("SELECT", "WITH")):
                cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
                plans.append(cursor.fetchone()[0][0]["Plan"])
        cursor.execute("SELECT set_config('enable_seqscan', %s, false)", [before])
    return [json.loads(plan) if isinstance(plan, str) else plan for plan in plans]


def rows_read(queries: CaptureQueriesContext) -> int:
    """Rows that the plans of all SELECTs touched, those filtered away included."""
    total = 0
    for query in queries.captured_queries:
        if not query["sql"].lstrip().startswith("SELECT"):
            continue
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query["sql"])
            (plan,) = cursor.fetchone()[0]
        total += _touched(plan["Plan"])
    return total


def _touched(plan: dict[str, Any]) -> int:
    dropped = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
    own = (plan["Actual Rows"] + dropped) * plan["Actual Loops"]
    return int(own) + sum(_touched(child) for child in plan.get("Plans", []))


def rows_scanned_in_sequence(plan: dict[str, Any]) -> int:
    """How many rows of tables are expected to be read from end to end. What a limit ends early
    is not read to its end."""
    if plan["Node Type"] == "Limit":
        return 0
    own = plan["Plan Rows"] if plan["Node Type"] == "Seq Scan" else 0
    return own + sum(rows_scanned_in_sequence(part) for part in _parts(plan))


def _parts(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from plan.get("Plans", [])


def _seqscan(cursor: Any) -> str:
    cursor.execute("SHOW enable_seqscan")
    (value,) = cursor.fetchone()
    return str(value)
