"""Redact what belongs to no chat: queue, admin log, logins, PostgreSQL's statistics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Q
from django_q.models import OrmQ, Task
from psycopg import sql

from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from memoryproject.foundation.retrieval.fragments import MARK, Fragments
from sessions_app.forgetting.registry import statistics_columns
from sessions_app.forgetting.sweep import ROWS_AT_ONCE, Sweep, Trace
from sessions_app.models import ForgetReceipt, InboundDelivery

_VALUES = """
SELECT stats.tablename, stats.attname, kept.value
FROM pg_stats AS stats, LATERAL (
    SELECT unnest(stats.most_common_vals::text::text[])
    UNION ALL SELECT unnest(stats.histogram_bounds::text::text[])
) AS kept (value)
WHERE stats.schemaname = current_schema() AND stats.tablename = ANY(%s)
"""

# Before PostgreSQL 18, the statistics of an empty table can't be removed.
_CLEAR = "SELECT pg_clear_attribute_stats(current_schema()::text, %s, %s, false)"

CLEARABLE = (18,)


def statistics_values() -> list[tuple[str, str, str]]:
    """Return the sampled values of erasable columns: table, column, and value as text."""
    swept = statistics_columns()
    with connection.cursor() as cursor:
        cursor.execute(_VALUES, [sorted({table for table, _ in swept})])
        kept = [row for row in cursor.fetchall() if row[:2] in swept]
    if connection.get_database_version() >= CLEARABLE:
        return kept
    empty = {table for table in {table for table, _, _ in kept} if not _has_row(table)}
    return [row for row in kept if row[0] not in empty]


def statistics_stale(values: list[tuple[str, str, str]], texts: Fragments) -> set[tuple[str, str]]:
    """Return the columns whose statistics keep a forgotten text that no row holds any more.

    A value that a remaining row holds belongs to that row.
    """
    return {
        (table, column)
        for table, column, value in values
        if texts.are_in(value) and not _has_row(table, column, value)
    }


def statistics_renew(texts: Fragments) -> None:
    """Gather the statistics of the affected tables again from the remaining rows."""
    stale = statistics_stale(statistics_values(), texts)
    if not stale:
        return
    with connection.cursor() as cursor:
        for table in sorted({table for table, _ in stale}):
            cursor.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))
        # ANALYZE doesn't change the statistics of empty tables.
        for table, column in sorted(statistics_stale(statistics_values(), texts)):
            cursor.execute(_CLEAR, [table, column])


def _has_row(table: str, column: str = "", value: str = "") -> bool:
    """Return whether the table has a row, or one with this value in the column."""
    query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(sql.Identifier(table))
    if column:
        query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE {}::text = %s)").format(
            sql.Identifier(table), sql.Identifier(column)
        )
    with connection.cursor() as cursor:
        cursor.execute(query, [value] if column else None)
        return bool(cursor.fetchone()[0])


# A shorter name or number occurs in too many unrelated texts.
MIN_NAME_LENGTH = 4

# The marks of a memory card in a stored response, as JSON and as YAML.
OF_CARDS = ('"algorithm_version"', "# Algorithm: ")

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def unscoped_redact(sweep: Sweep) -> None:
    """Redact the texts in records that belong to no chat. Call it after ``unscoped_begin``."""
    for provider, subject in sorted(sweep.deleted_messages):
        about = InboundDelivery.objects.filter(provider=provider, subject_id=subject)
        sweep.empty_deliveries(about)
    # The response of a call in progress isn't known yet.
    answers = IdempotentAnswer.objects.filter(withheld=False, status__isnull=True)
    answers.update(withheld=True)
    for trace in UnscopedTraces(sweep).find():
        trace.remove()
        sweep.count(trace.model, 1)


class UnscopedTraces:
    """Find the traces in records that belong to no chat, once for the sweep and once for the probe.

    ``read`` counts the rows that were read.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.read = 0
        self._texts = sweep.texts
        self._since = sweep.plan.since or sweep.now
        # Also the answers that were rewritten: a stored response may hold their old text.
        self._ids = {_bare(key) for key in sweep.ids | sweep.rewritten}
        self._erased = {_bare(key) for key in sweep.plan.erased}
        self._names = sorted(name for name in sweep.plan.names if len(name) >= MIN_NAME_LENGTH)
        self._card_sessions = set(sweep.card_sessions)

    def find(self) -> Iterator[Trace]:
        """Yield the traces of all tables."""
        yield from self._tasks()
        yield from self._admin_log()
        yield from self._logins()
        yield from self._api_answers()
        yield from self._deliveries_without_chat()

    def _tasks(self) -> Iterator[Trace]:
        """Yield finished tasks, and tasks that wait in the queue."""
        fields = ("id", "name", "args", "kwargs", "result", "started")
        for task in Task.objects.only(*fields).iterator(ROWS_AT_ONCE):
            self.read += 1
            values = [task.args, task.kwargs, task.result]
            quotes = task.started >= self._since and self._quotes(values)
            if quotes or self._is_about([task.name, *values]):
                yield Trace(Task, task.pk, task.delete)
        for queued in OrmQ.objects.iterator(ROWS_AT_ONCE):
            self.read += 1
            if self._quotes(queued.task) or self._is_about(queued.task):
                yield Trace(OrmQ, queued.pk, queued.delete)

    def _admin_log(self) -> Iterator[Trace]:
        """Yield the admin's entries about what was erased; another object's own words stay."""
        entries = LogEntry.objects.only("object_id", "object_repr", "change_message", "action_time")
        for entry in entries.iterator(ROWS_AT_ONCE):
            self.read += 1
            texts = [entry.object_repr, entry.change_message]
            key = entry.object_id or ""
            is_younger = entry.action_time >= self._since
            quotes = is_younger and not _UUID.fullmatch(key) and self._quotes(texts)
            if _bare(key) in self._ids or quotes or self._is_about([key, *texts]):
                row = LogEntry.objects.filter(pk=entry.pk)
                if entry.object_repr != MARK:
                    change = partial(row.update, object_repr=MARK, change_message="")
                    yield Trace(LogEntry, entry.pk, change)

    def _logins(self) -> Iterator[Trace]:
        """Yield logins with notices of the admin ("… was changed") that wait to be shown."""
        for session in Session.objects.iterator():
            self.read += 1
            data = session.get_decoded()
            notices = data.get("_messages")
            if notices is not None and (self._quotes(notices) or self._is_about(notices)):
                del data["_messages"]
                session.session_data = SessionStore().encode(data)
                save = partial(session.save, update_fields=["session_data"])
                yield Trace(Session, session.pk, save)

    def _api_answers(self) -> Iterator[Trace]:
        """Yield responses that are stored for repeated calls."""
        rows = IdempotentAnswer.objects.filter(withheld=False).exclude(body="")
        for row in rows.only("body", "headers", "created_at").iterator(ROWS_AT_ONCE):
            self.read += 1
            if is_receipt(row.body):
                continue
            text = f"{row.body} {row.headers}"
            is_named = any(_bare(key) in self._ids for key in _UUID.findall(text))
            quotes = row.created_at >= self._since and self._quotes(_without_id(row.body))
            if is_named or quotes or self._is_about(text) or self._is_card(row.body):
                changed = IdempotentAnswer.objects.filter(pk=row.pk)
                empty = partial(changed.update, body="", headers={}, withheld=True)
                yield Trace(IdempotentAnswer, row.pk, empty)

    def _deliveries_without_chat(self) -> Iterator[Trace]:
        """Yield deliveries that matched no chat, and quote a text or name the person.

        These are statuses, deliveries that couldn't be processed, and changes whose message never
        arrived.
        """
        rows = InboundDelivery.objects.filter(chat__isnull=True, message__isnull=True).filter(
            Q(raw__isnull=False) | Q(change__isnull=False)
        )
        for row in rows.only("raw", "change", "received_at").iterator(ROWS_AT_ONCE):
            self.read += 1
            values = [row.raw, row.change]
            quotes = row.received_at >= self._since and self._quotes(values)
            if quotes or self._names_person(values):
                changed = InboundDelivery.objects.filter(pk=row.pk)
                yield Trace(InboundDelivery, row.pk, partial(changed.update, raw=None, change=None))

    def _quotes(self, value: Any) -> bool:
        if not self._texts:
            return False
        plain = json.loads(json.dumps(value, default=str, ensure_ascii=False))
        return bool(self._texts.cleaned(plain) != plain)

    def _is_about(self, value: Any) -> bool:
        """Return whether the value names an erased session or chat, or the person."""
        if not self._erased and not self._names:
            return False
        text = json.dumps(value, default=str, ensure_ascii=False)
        if any(_bare(key) in self._erased for key in _UUID.findall(text)):
            return True
        return self._names_person(value)

    def _names_person(self, value: Any) -> bool:
        if not self._names:
            return False
        text = json.dumps(value, default=str, ensure_ascii=False).casefold()
        return any(name.casefold() in text for name in self._names)

    def _is_card(self, body: str) -> bool:
        """Return whether the body is the card of a session whose messages change.

        Such a card may hold single words of the messages that don't match by themselves.
        """
        if not any(mark in body for mark in OF_CARDS):
            return False
        return any(session_id in body for session_id in self._card_sessions)


def _without_id(body: str) -> Any:
    """Return the parts of a response that state no id of their own, which would tell what they are.

    A message, memory or answer in it is judged by its id: others may have said the same.
    """

    def strays(value: Any) -> Any:
        if isinstance(value, dict):
            own = any(key in value for key in ("message_id", "memory_id", "turn_id"))
            return [
                strays(part) for part in value.values() if not own or isinstance(part, list | dict)
            ]
        return [strays(part) for part in value] if isinstance(value, list) else value

    return strays(_parse_body(body))


def is_receipt(body: str) -> bool:
    """Return whether a stored response is a receipt, which holds nothing that was forgotten."""
    found = _parse_body(body) if body.startswith('{"receipt_id"') else None
    # A receipt of an earlier version has fewer fields.
    return isinstance(found, dict) and {"swept", "probe"} <= set(found) <= set(
        ForgetReceipt().as_dict()
    )


def _bare(key: str) -> str:
    return key.replace("-", "").lower()


def _parse_body(body: str) -> Any:
    """Return a response's document, or the body itself if it isn't a document."""
    try:
        return json.loads(body)
    except ValueError:
        return body
