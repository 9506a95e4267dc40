"""Lock the chats of a review, and audit it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from memoryproject.foundation.audit.audit_events import Actor, Event, audit_record_many
from sessions_app.models import Chat


def chats_lock(chat_ids: Collection[UUID]) -> list[UUID]:
    """Lock these chats until the transaction ends; return the ones that exist."""
    rows = Chat.objects.select_for_update(no_key=True).filter(pk__in=set(chat_ids))
    return list(rows.order_by("pk").values_list("pk", flat=True))


def chats_record(
    action: str, chats: Collection[UUID], actor: Actor, details: Mapping[str, Any] | None = None
) -> None:
    """Record an action on these chats in the audit log."""
    audit_record_many(
        events=[Event(action, actor, "chat", key, details=details or {}) for key in chats]
    )
