"""Audit events for changes that staff make in the admin."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.http import HttpRequest

from memoryproject.foundation.admin_kit.list_csv import PARAMETER
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


def list_export_record(request: HttpRequest, name: str, rows: int) -> None:
    """Record that staff took a list as a file. ``name``: the list's model."""
    audit_record(
        action="export",
        actor=staff_actor(request),
        object_type="list",
        details={"list": name, "rows": rows, "filters": sorted({*request.GET} - {PARAMETER})},
    )
