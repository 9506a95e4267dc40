"""How PostgreSQL answers what was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext


class CapturedWithValues(CaptureQueriesContext):
    """Captures statements as the server can run them again: prepared ones with their values."""

    def __enter__(self) -> CapturedWithValues:
        self._composed: list[dict[str, Any]] = []
        self._noting = self.connection.execute_wrapper(self._note)
        self._noting.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._noting.__exit__(*error)

    def _note(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        operations: Any = self.connection.ops
        self._composed.append({"sql": operations.compose_sql(sql, params)})
        return execute(sql, params, many, context)

    @property
    def captured_queries(self) -> list[dict[str, Any]]:
        return self._composed


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
                # A prepared statement has places for its parameters, and a plan for any of them.
                options = "GENERIC_PLAN, FORMAT JSON" if "$1" in sql else "FORMAT JSON"
                cursor.execute(f"EXPLAIN ({options}) {sql}")
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
