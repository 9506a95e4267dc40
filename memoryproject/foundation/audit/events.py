"""The one way in which anything is written to the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.pseudonyms import pseudonyms_for
from memoryproject.foundation.audit.schedule_seal import schedule_seal
from memoryproject.foundation.audit.wiring import audit_key

BATCH = 1_000


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


def actor_name(actor: Actor) -> str:
    """Who it was, as records show it: a name, or a person's pseudonym."""
    if actor.chat_id is None:
        return actor.name
    return pseudonyms_for(key=audit_key(), chat_ids=[actor.chat_id])[actor.chat_id]


@dataclass(frozen=True)
class Event:
    """One thing that was done, with the meanings of audit_record's arguments."""

    action: str
    actor: Actor
    object_type: str = ""
    object_id: object = ""
    content_hash: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    chat_id: UUID | None = None

    def concerns(self) -> UUID | None:
        """The chat that it concerns. Raises ValueError where object_type is "chat" and
        object_id isn't a chat's id: a WhatsApp id holds a phone number."""
        if self.object_type == "chat" and self.object_id:
            return UUID(str(self.object_id))
        return self.chat_id or self.actor.chat_id

    def people(self) -> set[UUID]:
        return {each for each in (self.concerns(), self.actor.chat_id) if each is not None}


def audit_record(
    *,
    action: str,
    actor: Actor,
    object_type: str = "",
    object_id: object = "",
    content_hash: str = "",
    details: Mapping[str, Any] | None = None,
    chat_id: UUID | None = None,
) -> None:
    """Tell the audit log of something that was done, in the caller's transaction: what is
    rolled back was not done.

    action: a dotted name, such as memory.remember, memory.update, memory.forget,
    memory.visibility, session.create, session.expire, conversation.read, export, login.failed,
    setting.change. object_type and object_id: what it was done to; object_type "chat" takes
    the chat's id and stores the person's pseudonym. content_hash: SHA-256 of the text, hex.
    details: counts, names of fields and the like; never a text that somebody wrote. chat_id:
    the chat that it concerns, stored as the person's pseudonym; a person's own by default.
    """
    event = Event(action, actor, object_type, object_id, content_hash, details or {}, chat_id)
    audit_record_many(events=[event])


def audit_record_many(*, events: Sequence[Event], seal: bool = True) -> None:
    """The same for many at once, in as many queries as for one. ``seal``: let a worker seal
    them as soon as they are committed; else the next schedule does."""
    if not events:
        return
    people = set().union(*(event.people() for event in events))
    names = pseudonyms_for(key=audit_key(), chat_ids=people)
    AuditEvent.objects.bulk_create([_row(event, names) for event in events], batch_size=BATCH)
    if seal:
        transaction.on_commit(schedule_seal, robust=True)


def _row(event: Event, names: Mapping[UUID, str]) -> AuditEvent:
    actor, chat = event.actor, event.concerns()
    pseudonym = names[chat] if chat else ""
    is_chat = event.object_type == "chat"
    return AuditEvent(
        action=event.action,
        actor_kind=actor.kind,
        actor=names[actor.chat_id] if actor.chat_id else actor.name,
        chat=pseudonym,
        object_type=event.object_type,
        object_id=pseudonym if is_chat and event.object_id else str(event.object_id),
        content_hash=event.content_hash,
        details=dict(event.details),
    )
