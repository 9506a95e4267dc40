"""Spans of jobs and of database queries, which need no code where they happen."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django_q.signals import post_execute_in_worker, pre_enqueue, pre_execute

from memoryproject.foundation.process import tracing

MAX_QUERY_LENGTH = 2_000
OPERATIONS = frozenset(
    {"DELETE", "INSERT", "RELEASE", "ROLLBACK", "SAVEPOINT", "SELECT", "UPDATE", "WITH"}
)
# What remains of texts in forms that the pattern below doesn't know: E'…\\'…' and $$…$$.
UNREADABLE = frozenset("'\\$")

_LITERAL = re.compile(r"'[^']*'|\b[0-9]+\b")
_TABLE = re.compile(r'\b(?:FROM|INTO|UPDATE) "(\w+)"')

# The span of the job that this worker is at.
_job = ExitStack()


def trace_work() -> None:
    """Trace jobs and queries. A job continues the trace of what enqueued it."""
    pre_enqueue.connect(_job_enqueued)
    pre_execute.connect(_job_started)
    post_execute_in_worker.connect(_job_ended)
    connection_created.connect(_connected)


def _job_enqueued(sender: object, task: dict[str, Any], **_: object) -> None:
    if around := tracing.current_span():
        task[tracing.TRACEPARENT] = around.traceparent


def _job_started(sender: object, task: dict[str, Any], **_: object) -> None:
    function = task["func"] if isinstance(task["func"], str) else tracing.OTHER
    _job.enter_context(
        tracing.span(
            f"job {function.rpartition('.')[2]}",
            tracing.Kind.CONSUMER,
            parent=task.get(tracing.TRACEPARENT, ""),
            attributes={"memory.job.function": function},
        )
    )


def _job_ended(sender: object, task: dict[str, Any], **_: object) -> None:
    around = tracing.current_span()
    if around is not None and not task["success"]:
        # Of the error django-q2 keeps only a text, which may quote.
        around.fail(tracing.OTHER)
    _job.close()


def _connected(sender: object, connection: BaseDatabaseWrapper, **_: object) -> None:
    if _query not in connection.execute_wrappers:
        connection.execute_wrappers.append(_query)


def _query(
    execute: Callable[..., Any], sql: object, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Trace one query. Outside of a span there is none: workers ask for jobs all the time."""
    if tracing.current_span() is None:
        return execute(sql, params, many, context)
    name, attributes = query_shown(sql)
    with tracing.span(name, tracing.Kind.CLIENT, attributes=attributes):
        return execute(sql, params, many, context)


def query_shown(sql: object) -> tuple[str, dict[tracing.Attribute, str | int]]:
    """Return a span's name and attributes for a query, without any value.

    Values are parameters, which aren't read. What is written into the statement itself as a text or
    a number is left out. Of a statement that isn't a text nothing is shown.
    """
    shown: dict[tracing.Attribute, str | int] = {"db.system.name": "postgresql"}
    if not isinstance(sql, str):
        return tracing.OTHER, shown
    operation = sql[:20].lstrip().partition(" ")[0].upper()
    if operation not in OPERATIONS:
        return tracing.OTHER, shown
    text = _LITERAL.sub("?", sql)
    shown["db.operation.name"] = operation
    if not UNREADABLE & set(text):
        shown["db.query.text"] = text[:MAX_QUERY_LENGTH]
    table = _TABLE.search(text)
    if table is None:
        return operation, shown
    shown["db.collection.name"] = table[1]
    return f"{operation} {table[1]}", shown
