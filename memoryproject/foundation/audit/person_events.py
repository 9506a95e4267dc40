"""Read what staff did with one person's data, for the page of that person."""

from __future__ import annotations

from uuid import UUID

from memoryproject.foundation.audit.audit_events import audit_key, pseudonyms_of
from memoryproject.foundation.audit.models import AuditEvent

# Of a chat with very many events only the newest are looked through.
MAX_LOOKED_THROUGH = 2_000


def staff_events_of(*, chat_id: UUID, most: int) -> list[AuditEvent]:
    """Return the newest reads and changes by staff that concern a chat."""
    names = pseudonyms_of(key=audit_key(), chat_id=chat_id)
    if not names:
        return []
    newest = AuditEvent.objects.filter(chat__in=names).order_by("-id").values("pk")
    events = AuditEvent.objects.filter(pk__in=newest[:MAX_LOOKED_THROUGH], actor_kind="staff")
    return list(events.order_by("-id")[:most])
