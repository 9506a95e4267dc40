"""Record what a merge moves, so that it can be undone exactly."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils import timezone

from memories_app.models import Memory, MemoryStatus, SourceDocument
from memories_app.store.facade import same_files_record
from memoryproject.foundation.audit.audit_events import person_keys
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoints_bound
from memoryproject.foundation.rest_kit.tokens import tokens_bound
from sessions_app.merging.decided_states import labels_read, states_read
from sessions_app.merging.stored_columns import columns_of
from sessions_app.models import (
    Bookmark,
    Chat,
    ChatAddress,
    ChatSession,
    ContactMerge,
    ForgetReceipt,
    Note,
    Turn,
    UsageDay,
)

CHAT = (
    "whatsapp_chat",
    "provider",
    "number_id",
    "client_name",
    "staff_name",
    "client_phone",
    "language",
    "memory_enabled",
    "created_at",
)
USAGE = (
    "day",
    "is_owner",
    "model_calls",
    "prompt_tokens",
    "completion_tokens",
    "cost",
    "reached",
    "reached_at",
    "told_turn",
)


def record_begin(*, kept: Chat, gone: Chat, by: str) -> ContactMerge:
    """Return the record of a merge, unsaved, before anything is moved."""
    key = gone.pk
    sessions = ChatSession.objects.filter(chat=key)
    return ContactMerge(
        chat=kept,
        gone_id=key,
        merged_at=timezone.now(),
        merged_by=by[:150],
        gone=columns_of(gone, CHAT),
        kept=columns_of(kept, CHAT),
        rows={
            "sessions": _texts(sessions.values_list("pk", flat=True)),
            # Where memory is off, answers belong to no session.
            "turns": _keys(Turn.objects.filter(chat=key, session=None)),
            "memories": _texts(Memory.objects.filter(chat_id=key).values_list("pk", flat=True)),
            "in_force": _in_force(key),
            "unpinned": _in_force(kept.pk, pinned=False),
            "files": same_files_record(from_chat=key, to_chat=kept.pk),
            "documents": _texts(
                SourceDocument.objects.filter(chat_id=key).values_list("pk", flat=True)
            ),
            "notes": _texts(Note.objects.filter(chat=key).values_list("pk", flat=True)),
            "bookmarks": list(
                Bookmark.objects.filter(chat=key, message=None).values_list("user_id", flat=True)
            ),
            "addresses": _keys(ChatAddress.objects.filter(chat=key)),
            "receipts": _keys(ForgetReceipt.objects.filter(chat_id=key)),
            "merges": _texts(ContactMerge.objects.filter(chat=key).values_list("pk", flat=True)),
            "people": person_keys(key),
            "tokens": {"kept": tokens_bound(kept.pk), "gone": tokens_bound(key)},
            "endpoints": {"kept": endpoints_bound(kept.pk), "gone": endpoints_bound(key)},
            "labels": {"kept": labels_read(kept.pk), "gone": labels_read(key)},
            "states": {"kept": states_read(kept.pk), "gone": states_read(key)},
            "usage": [columns_of(day, USAGE) for day in UsageDay.objects.filter(chat=key)],
        },
    )


def record_end(record: ContactMerge, merged: Chat) -> None:
    """Save the record once everything is moved and the merged chat is as it stays."""
    record.chat = merged
    record.rows["after"] = columns_of(merged, CHAT)
    record.rows["states"]["after"] = states_read(merged.pk)
    joined = Memory.objects.filter(
        pk__in=record.rows.pop("in_force"), status=MemoryStatus.SUPERSEDED
    )
    # The fact was known to both: its other memory counts the mentions of both.
    record.rows["joined"] = {str(memory.pk): str(memory.superseded_by_id) for memory in joined}
    others = set(record.rows["joined"].values()) & set(record.rows.pop("unpinned"))
    pinned = Memory.objects.filter(pk__in=others, pinned=True)
    record.rows["pinned"] = _texts(pinned.values_list("pk", flat=True))
    record.save()


def _in_force(chat_id: UUID, **which: Any) -> list[str]:
    active = Memory.objects.filter(chat_id=chat_id, status=MemoryStatus.ACTIVE, **which)
    return _texts(active.values_list("pk", flat=True))


def _texts(keys: Any) -> list[str]:
    return [str(key) for key in keys]


def _keys(rows: Any) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))
