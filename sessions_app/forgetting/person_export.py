"""Export everything stored about a person or a group, as lines of JSON.

A person may ask for it before being forgotten.
"""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import Model, QuerySet

from cards_app.models import MemoryCard
from memories_app.models import Memory, MemoryRevision, SourceDocument
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app import models

ROWS_AT_ONCE = 500
# Columns for search and for leases: they say nothing about the person.
LEFT_OUT = {
    "terms",
    "term_count",
    "likeness",
    "fact_key",
    "content_hash",
    "lease_token",
    "lease_owner",
    "lease_until",
    "source_digest",
    # Of a record of an answer: its month, and there may be no record.
    "made_at",
}


def person_export(*, chat: models.Chat, actor: Actor) -> Iterator[str]:
    """Yield a line for each record, without its line end; its ``record`` names the table.

    The export is audited before the first line is made. Only a few rows are in memory at once.
    """
    with transaction.atomic():
        audit_record(
            "export", actor, "chat", chat.pk, messages=chat.messages.count(), everything=True
        )
    return _lines(chat.pk)


def _lines(chat_id: UUID) -> Iterator[str]:
    own: list[QuerySet[Any]] = [
        models.Chat.objects.filter(pk=chat_id),
        models.ChatAddress.objects.filter(chat=chat_id),
        models.ContactMerge.objects.filter(chat=chat_id),
        models.ChatSession.objects.filter(chat=chat_id).order_by("created_at"),
        models.SessionOutcome.objects.filter(session__chat=chat_id).order_by("ended_at"),
        models.Message.objects.filter(chat=chat_id).order_by("received_at", "order_num"),
        models.SummarizationMetadata.objects.filter(session__chat=chat_id),
        MemoryCard.objects.filter(chat_id=chat_id),
        Memory.objects.filter(chat_id=chat_id).order_by("created_at", "memory_id"),
        MemoryRevision.objects.filter(memory__chat_id=chat_id),
        SourceDocument.objects.filter(chat_id=chat_id),
        models.Turn.objects.filter(chat=chat_id).select_related("replay").order_by("id"),
        models.AnswerTrial.objects.filter(turn__chat=chat_id).order_by("created_at"),
        models.CheckQuestion.objects.filter(message__chat=chat_id).order_by("id"),
        models.InboundDelivery.objects.filter(chat=chat_id).order_by("id"),
        models.BroadcastRecipient.objects.filter(chat=chat_id).order_by("id"),
        models.Note.objects.filter(chat=chat_id).order_by("created_at", "note_id"),
    ]
    for rows in own:
        for row in rows.iterator(ROWS_AT_ONCE):
            yield json.dumps(_record(row), ensure_ascii=False, cls=DjangoJSONEncoder)


def _record(row: Model) -> dict[str, Any]:
    """Return all columns of the row, also the read-only ones; a turn includes its replay."""
    record: dict[str, Any] = {"record": row._meta.model_name, **_values(row)}
    if isinstance(row, models.Turn):
        record = {**_values(models.TurnReplay.of(row)), **record}
        del record["turn"]
    return record


def _values(row: Model) -> dict[str, Any]:
    return {
        field.name: field.value_from_object(row)
        for field in row._meta.concrete_fields
        if field.name not in LEFT_OUT
    }
