"""Redact what belongs to no chat: queue, admin log, logins, PostgreSQL's statistics."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model, Q, TextField
from django.db.models.functions import Cast
from django_q.models import OrmQ, Task
from psycopg import sql

from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from memoryproject.foundation.retrieval.fragments import MARK, Fragments
from sessions_app.forgetting.redact_chats import deliveries_redact
from sessions_app.forgetting.registry import statistics_columns
from sessions_app.forgetting.sweep import ROWS_AT_ONCE, Sweep
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
    empty = {table for table in {table for table, _, _ in kept} if not _has_rows(table)}
    return [row for row in kept if row[0] not in empty]


def _has_rows(table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT EXISTS (SELECT 1 FROM {})").format(sql.Identifier(table)))
        return bool(cursor.fetchone()[0])


def statistics_stale(values: list[tuple[str, str, str]], texts: Fragments) -> set[tuple[str, str]]:
    """Return the columns whose statistics keep a forgotten text that no row holds any more.

    A value that a remaining row holds belongs to that row.
    """
    return {
        (table, column)
        for table, column, value in values
        if texts.are_in(value) and not _is_there(table, column, value)
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


def _is_there(table: str, column: str, value: str) -> bool:
    query = sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE {}::text = %s)")
    with connection.cursor() as cursor:
        cursor.execute(query.format(sql.Identifier(table), sql.Identifier(column)), [value])
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
    plan = sweep.plan
    if sweep.texts and plan.since is not None:
        deliveries_redact(sweep, InboundDelivery.objects.filter(chat__isnull=True), plan.since)
    redaction = UnscopedRedaction(
        texts=sweep.texts,
        ids=sweep.ids,
        erased=plan.erased,
        names=plan.names,
        card_sessions=sweep.card_sessions,
    )
    redaction.redact()
    sweep.swept.update(redaction.swept)


class UnscopedRedaction:
    """Redact the records that belong to no chat.

    ``texts`` are the texts to find and ``ids`` the objects that go. ``erased`` are those ids that
    are whole sessions and chats with their contents. ``names`` are the person's names.
    ``card_sessions`` are the sessions whose cards were deleted.
    """

    def __init__(
        self,
        *,
        texts: Fragments,
        ids: Collection[str],
        erased: Collection[str],
        names: Collection[str],
        card_sessions: Collection[str],
    ) -> None:
        self.swept: Counter[str] = Counter()
        self._texts = texts
        self._ids = set(ids)
        self._erased = {_bare(key) for key in erased}
        self._names = sorted(name for name in names if len(name) >= MIN_NAME_LENGTH)
        self._card_sessions = set(card_sessions)

    def redact(self) -> None:
        """Redact all of these records."""
        self._tasks()
        self._admin_log()
        self._logins()
        self._api_answers()
        self._deliveries_without_chat()

    def _tasks(self) -> None:
        """Redact results and errors of finished tasks, and tasks that wait in the queue."""
        fields = ("id", "name", "args", "kwargs", "result")
        for task in Task.objects.only(*fields).iterator(ROWS_AT_ONCE):
            values = [task.args, task.kwargs, task.result]
            if self._repeats(values) or self._is_about([task.name, *values]):
                Task.objects.filter(pk=task.pk).delete()
                self._count(Task)
        for queued in OrmQ.objects.iterator(ROWS_AT_ONCE):
            if self._repeats(queued.task) or self._is_about(queued.task):
                queued.delete()
                self._count(OrmQ)

    def _admin_log(self) -> None:
        entries = LogEntry.objects.only("object_id", "object_repr", "change_message")
        for entry in entries.iterator():
            texts = [entry.object_repr, entry.change_message]
            about = entry.object_id in self._ids or self._is_about([entry.object_id, *texts])
            if about or self._repeats(texts):
                LogEntry.objects.filter(pk=entry.pk).update(object_repr=MARK, change_message="")
                self._count(LogEntry)

    def _logins(self) -> None:
        """Redact the admin's notices ("… was changed"), which may wait in a login session."""
        for session in Session.objects.iterator():
            data = session.get_decoded()
            notices = data.get("_messages")
            if notices is not None and (self._repeats(notices) or self._is_about(notices)):
                del data["_messages"]
                session.session_data = SessionStore().encode(data)
                session.save(update_fields=["session_data"])
                self._count(Session)

    def _api_answers(self) -> None:
        """Redact responses that are stored for repeated calls.

        A call in progress is withheld, because its response isn't known yet.
        """
        rows = IdempotentAnswer.objects.filter(withheld=False)
        rows.filter(status__isnull=True).update(withheld=True)
        for row in rows.exclude(body="").only("body", "headers").iterator(ROWS_AT_ONCE):
            if is_receipt(row.body):
                continue
            about = self._is_about([row.body, row.headers]) or self._is_card(row.body)
            # A document's texts are JSON: only the whole body repeats them.
            repeats = self._texts.are_in(row.body) or self._repeats(_parse_body(row.body))
            if about or repeats:
                IdempotentAnswer.objects.filter(pk=row.pk).update(
                    body="", headers={}, withheld=True
                )
                self._count(IdempotentAnswer)

    def _deliveries_without_chat(self) -> None:
        """Remove deliveries about the person that matched no chat.

        These are statuses, deliveries that couldn't be processed, and changes whose message never
        arrived.
        """
        if not self._names:
            return
        without_chat = InboundDelivery.objects.filter(chat__isnull=True).filter(
            Q(raw__isnull=False) | Q(change__isnull=False)
        )
        names_person = Q()
        for name in self._names:
            names_person |= Q(raw_text__icontains=name) | Q(change_text__icontains=name)
        texts = {"raw_text": Cast("raw", TextField()), "change_text": Cast("change", TextField())}
        rows = without_chat.annotate(**texts).filter(names_person).values_list("pk", flat=True)
        emptied = InboundDelivery.objects.filter(pk__in=list(rows)).update(raw=None, change=None)
        self._count(InboundDelivery, emptied)

    def _repeats(self, value: Any) -> bool:
        plain = json.loads(json.dumps(value, default=str, ensure_ascii=False))
        return bool(self._texts.cleaned(plain) != plain)

    def _is_about(self, value: Any) -> bool:
        """Return whether the value names an erased session or chat, or the person."""
        if not self._erased and not self._names:
            return False
        text = json.dumps(value, default=str, ensure_ascii=False)
        if any(_bare(key) in self._erased for key in _UUID.findall(text)):
            return True
        folded = text.casefold()
        return any(name.casefold() in folded for name in self._names)

    def _is_card(self, body: str) -> bool:
        """Return whether the body is the card of a session whose messages change.

        Such a card may hold single words of the messages that don't match by themselves.
        """
        if not any(mark in body for mark in OF_CARDS):
            return False
        return any(session_id in body for session_id in self._card_sessions)

    def _count(self, model: type[Model], rows: int = 1) -> None:
        if rows:
            self.swept[model._meta.db_table] += rows


def is_receipt(body: str) -> bool:
    """Return whether a stored response is a receipt, which holds nothing that was forgotten."""
    found = _parse_body(body) if body.startswith('{"receipt_id"') else None
    return isinstance(found, dict) and set(found) == set(ForgetReceipt().as_dict())


def _bare(key: str) -> str:
    return key.replace("-", "").lower()


def _parse_body(body: str) -> Any:
    """Return a response's document, or the body itself if it isn't a document."""
    try:
        return json.loads(body)
    except ValueError:
        return body
