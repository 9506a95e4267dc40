"""The sources of the probe: staff search, and the columns that can hold a text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model, QuerySet
from django_q.models import OrmQ, Task

from memories_app.search.facade import memories_for_staff
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from memoryproject.foundation.retrieval.query import with_words
from sessions_app.forgetting.redact_replays import REPLAY_TEXTS, TRIAL_TEXTS, TURN_TEXTS
from sessions_app.forgetting.redact_unscoped import is_receipt
from sessions_app.models import (
    AnswerTrial,
    ExtractionWork,
    InboundDelivery,
    Message,
    Note,
    OutboundPart,
    SummarizationMetadata,
    Turn,
    TurnReplay,
)
from sessions_app.models.messages import Role
from sessions_app.recall.facade import newest_messages_found

RECALLED_TABLES = (
    "memories_app_memory",
    "memories_app_memoryembedding",
    "sessions_app_message",
    "sessions_app_messageembedding",
)


def memories_found(text: str, *, most: int) -> list[UUID]:
    """Return the newest memories that staff find by these words."""
    found = with_words(memories_for_staff(), text).order_by("-created_at", "memory_id")
    return list(found.values_list("pk", flat=True)[:most])


def messages_found(text: str, chats: Collection[UUID], *, most: int) -> list[Message]:
    """Return the newest messages of these chats that staff find by these words."""
    return newest_messages_found(Message.objects.filter(chat__in=list(chats)), text, 0, most)


def indexes_of(tables: Sequence[str]) -> list[str]:
    """Return the indexes of words and vectors on these tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            " AND tablename = ANY(%s) AND indexdef ~ 'USING (gin|hnsw|ivfflat)'",
            [list(tables)],
        )
        return [name for (name,) in cursor.fetchall()]


ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Column:
    """A column of some rows.

    ``what`` names a row in an error; ``read`` converts a value to its content.
    """

    what: str
    chosen: QuerySet[Any]
    field: str
    read: Callable[[Any], Any] = lambda value: value

    @property
    def name(self) -> str:
        """Return the name that the registry uses."""
        model: type[Model] = self.chosen.model
        # No column is a foreign key, whose column name differs from its field name.
        return f"{model._meta.db_table}.{self.field}"

    def rows(self) -> Iterator[tuple[object, Any]]:
        """Yield the key and the value of each row."""
        values = self.chosen.order_by().values_list("pk", self.field)
        for key, value in values.iterator(ROWS_AT_ONCE):
            yield key, self.read(value)


def chat_columns(chats: Collection[UUID], since: datetime) -> list[Column]:
    """Return the columns of what was made in these chats since then.

    These are answers, summaries, sent parts, replays, trials, notes and raw deliveries.
    """
    messages = Message.objects.filter(chat_id__in=chats, received_at__gte=since)
    answers = messages.filter(role__in=[Role.ASSISTANT, Role.SUMMARY])
    summaries = SummarizationMetadata.objects.filter(
        session__chat_id__in=chats, created_at__gte=since
    )
    turns = Turn.objects.filter(chat_id__in=chats, created_at__gte=since)
    parts = OutboundPart.objects.filter(turn__chat_id__in=chats, turn__created_at__gte=since)
    extractions = ExtractionWork.objects.filter(turn__chat_id__in=chats)
    delivered = InboundDelivery.objects.filter(chat__in=chats, received_at__gte=since)
    replays = TurnReplay.objects.filter(turn__in=turns)
    trials = AnswerTrial.objects.filter(turn__chat_id__in=chats, created_at__gte=since)
    return [
        Column("message", answers, "content"),
        *(Column("summary", summaries, name) for name in ("digest", "chapter")),
        Column("part", parts, "content"),
        Column("note", Note.objects.filter(chat__in=chats), "text"),
        *(Column("turn", turns, name) for name in TURN_TEXTS),
        *(Column("turn", replays, name) for name in REPLAY_TEXTS),
        *(Column("trial", trials, name) for name in TRIAL_TEXTS),
        Column("work", extractions, "error"),
        *(Column("delivery", delivered, name) for name in ("raw", "change")),
    ]


def unscoped_columns(since: datetime | None) -> list[Column]:
    """Return the swept columns of records that belong to no chat: see UnscopedRedaction."""
    tasks, queue, log = Task.objects.all(), OrmQ.objects.all(), LogEntry.objects.all()
    answers = IdempotentAnswer.objects.filter(withheld=False)
    delivered = InboundDelivery.objects.filter(chat__isnull=True)
    if since is not None:
        delivered = delivered.filter(received_at__gte=since)
    return [
        *(Column("task", tasks, name, _plain) for name in ("args", "kwargs", "result")),
        *(Column("log entry", log, name) for name in ("object_repr", "change_message")),
        *(Column("delivery", delivered, name) for name in ("raw", "change") if since),
        Column("job", queue, "payload", lambda payload: _plain(OrmQ(payload=payload).task)),
        Column("login", Session.objects.all(), "session_data", _notices),
        Column("answer", answers, "body", lambda body: "" if is_receipt(body) else body),
    ]


def _plain(value: Any) -> Any:
    """Convert a value that is neither text, list nor mapping, as the sweep does."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value)


def _notices(data: str) -> Any:
    return Session(session_data=data).get_decoded().get("_messages")
