"""The one way in which anything is written to the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memoryproject.audit.models import AuditEvent


@dataclass(frozen=True)
class Actor:
    """Who does something. ``kind`` is one of staff (``name`` is the user name), api (the
    token's name), person (a client or the godfather; ``chat_id`` is their chat's id),
    command (somebody at the server's command line) and system (the clock, a worker)."""

    kind: str
    name: str = ""
    chat_id: UUID | None = None


SYSTEM = Actor("system")
COMMAND_LINE = Actor("command")


def audit_record(
    *,
    action: str,
    actor: Actor,
    object_type: str = "",
    object_id: object = "",
    content_hash: str = "",
    details: Mapping[str, Any] | None = None,
) -> None:
    """Tell the audit log of something that was done, in the caller's transaction: what is
    rolled back was not done.

    action: a dotted name, such as memory.remember, memory.update, memory.forget,
    memory.visibility, session.create, session.expire, conversation.read, export, login.failed,
    setting.change. object_type and object_id: what it was done to; object_type "chat" takes
    the chat's id and stores the person's pseudonym. content_hash: SHA-256 of the text, hex.
    details: counts, names of fields and the like; never a text that somebody wrote.
    """
    AuditEvent.objects.create(
        action=action,
        actor_kind=actor.kind,
        actor=str(actor.chat_id) if actor.chat_id else actor.name,
        object_type=object_type,
        object_id=str(object_id),
        content_hash=content_hash,
        details=dict(details or {}),
    )
