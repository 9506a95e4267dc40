"""Audit events for changes that staff make in the admin."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.http import HttpRequest

from memoryproject.foundation.audit.audit_events import Actor, audit_record


def staff_actor(request: HttpRequest) -> Actor:
    """Return the logged-in staff member as an actor."""
    return Actor("staff", request.user.get_username())


def staff_edit_record(
    request: HttpRequest,
    *,
    action: str,
    object_type: str,
    object_id: object,
    fields: Sequence[str],
    chat_id: UUID | None = None,
) -> None:
    """Record that a saved form changed these fields. Records nothing if it changed none."""
    if not fields:
        return
    audit_record(
        action=action,
        actor=staff_actor(request),
        object_type=object_type,
        object_id=object_id,
        details={"fields": sorted(fields)},
        chat_id=chat_id,
    )
