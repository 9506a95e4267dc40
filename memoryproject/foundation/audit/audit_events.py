"""Write events to the audit log; people in it are keyed pseudonyms; who they are, by name."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.db import transaction
from django.dispatch import Signal, receiver
from django.http import HttpRequest

from memoryproject.foundation.admin_kit.list_csv import PARAMETER
from memoryproject.foundation.audit.audit_logfile import sign
from memoryproject.foundation.audit.models import AuditEvent, AuditPerson, AuditSealJob
from memoryproject.foundation.process.jobs import enqueue
from memoryproject.foundation.tables import read_table

LENGTH = 32


LOG_NAME = "memory_audit.log"


def audit_key() -> str:
    return str(settings.AUDIT_KEY)


def log_path() -> Path:
    return Path(settings.LOG_DIR) / LOG_NAME


def pseudonym(key: str, salt: str) -> str:
    """Return what the log calls the person with this salt."""
    return "p-" + sign(key, "person", salt)[:LENGTH]


def pseudonyms_for(*, key: str, chat_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return each chat's pseudonym, and create the missing ones.

    If two processes create the same pseudonym at the same time, one waits for the other and gets
    its result.
    """
    wanted = sorted(set(chat_ids))
    if not wanted:
        return {}
    salts = _salts(wanted)
    missing = [chat_id for chat_id in wanted if chat_id not in salts]
    if missing:
        AuditPerson.objects.bulk_create(
            [AuditPerson(chat_id=chat_id, salt=secrets.token_hex(32)) for chat_id in missing],
            ignore_conflicts=True,
        )
        salts = _salts(wanted)
    return {chat_id: pseudonym(key, salts[chat_id]) for chat_id in wanted}


def _salts(chat_ids: list[UUID]) -> dict[UUID, str]:
    known = AuditPerson.objects.filter(chat_id__in=chat_ids, merged=False)
    return dict(known.values_list("chat_id", "salt"))


def pseudonyms_of(*, key: str, chat_id: UUID) -> list[str]:
    """Return all pseudonyms under which a chat's events are found.

    Empty for a chat that has none or was made unlinkable.
    """
    salts = AuditPerson.objects.filter(chat_id=chat_id).order_by("merged", "id")
    return [pseudonym(key, salt) for salt in salts.values_list("salt", flat=True)]


def person_detach(*, chat_id: UUID) -> int:
    """Delete the link between a chat and its pseudonyms; return how many pseudonyms went.

    The events stay and the chain verifies, but nobody can link them to the chat any more, not even
    with the key. Backups made before still hold the salts.
    """
    return AuditPerson.objects.filter(chat_id=chat_id).delete()[0]


def person_merge(*, kept: UUID, gone: UUID) -> None:
    """Merge the pseudonyms of two chats that are one person.

    Events of ``kept`` recorded from now on use its own pseudonym. Events recorded for either chat
    are found under it and made unlinkable with it.

    Call it in the transaction that merges the chats and holds their locks.
    """
    with transaction.atomic():
        both = AuditPerson.objects.select_for_update(no_key=True).filter(chat_id__in=[kept, gone])
        has_own = any(person.chat_id == kept and not person.merged for person in both)
        AuditPerson.objects.filter(chat_id=gone).update(
            chat_id=kept, **({"merged": True} if has_own else {})
        )


def person_keys(chat_id: UUID) -> list[int]:
    """Return the keys of a chat's pseudonyms, its own first, to undo a merge with them."""
    rows = AuditPerson.objects.filter(chat_id=chat_id).order_by("merged", "id")
    return list(rows.values_list("pk", flat=True))


def person_split(*, kept: UUID, gone: UUID, keys: Sequence[int]) -> None:
    """Give a chat back the pseudonyms that it had before it was merged: see ``person_keys``.

    Call it in the transaction that undoes the merge and holds the chats' locks.
    """
    rows = AuditPerson.objects.filter(pk__in=keys, chat_id=kept)
    rows.update(chat_id=gone, merged=True)
    AuditPerson.objects.filter(pk__in=keys[:1], chat_id=gone).update(merged=False)


@dataclass(frozen=True)
class Actor:
    """The person or program that does something.

    ``kind`` is one of staff (``name`` is the user name), api (the token's name), person (a client
    or the godfather; ``chat_id`` is their chat's id), command (somebody at the server's command
    line) and system (the clock, a worker).

    ``on_behalf_of`` is the chat of the person in whose place a program or staff write.
    """

    kind: str
    name: str = ""
    chat_id: UUID | None = None
    on_behalf_of: UUID | None = None


SYSTEM = Actor("system")

COMMAND_LINE = Actor("command")


def actor_name(actor: Actor) -> str:
    """Return the actor as records show it: a name, or a person's pseudonym."""
    if actor.chat_id is None:
        return actor.name
    return pseudonyms_for(key=audit_key(), chat_ids=[actor.chat_id])[actor.chat_id]


@dataclass(frozen=True)
class Event:
    """One action. The fields mean the same as audit_record's arguments."""

    action: str
    actor: Actor
    object_type: str = ""
    object_id: object = ""
    content_hash: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    chat_id: UUID | None = None

    def concerns(self) -> UUID | None:
        """Return the chat that the event concerns.

        Raises ValueError if object_type is "chat" and object_id isn't a chat's id: a WhatsApp id
        holds a phone number.
        """
        if self.object_type == "chat" and self.object_id:
            return UUID(str(self.object_id))
        return self.chat_id or self.actor.chat_id or self.actor.on_behalf_of

    def people(self) -> set[UUID]:
        actor = self.actor
        concerned = (self.concerns(), actor.chat_id, actor.on_behalf_of)
        return {each for each in concerned if each is not None}


def audit_record(
    action: str,
    actor: Actor,
    object_type: str = "",
    object_id: object = "",
    /,
    *,
    content_hash: str = "",
    chat_id: UUID | None = None,
    **details: Any,
) -> None:
    """Record an action in the audit log, in the caller's transaction.

    A rollback also removes the record.

    action: a dotted name, such as memory.remember, memory.update, memory.forget, memory.visibility,
    session.create, session.expire, conversation.read, export, login.failed, setting.change.
    object_type and object_id: the affected object; object_type "chat" takes the chat's id and
    stores the person's pseudonym. content_hash: SHA-256 of the text, in hex. chat_id: the chat that
    it concerns, stored as the person's pseudonym; by default the person's own chat. details:
    counts, names of fields and the like; never a text that somebody wrote.

    An actor who writes in a person's place is recorded with the person's pseudonym in the details,
    as on_behalf_of.
    """
    event = Event(action, actor, object_type, object_id, content_hash, details, chat_id)
    audit_record_many(events=[event])


def audit_record_many(*, events: Sequence[Event], seal: bool = True) -> None:
    """Record many actions, in as many queries as for one.

    ``seal``: let a worker seal them as soon as they are committed; otherwise the next schedule
    does.
    """
    if not events:
        return
    people = set().union(*(event.people() for event in events))
    names = pseudonyms_for(key=audit_key(), chat_ids=people)
    AuditEvent.objects.bulk_create([_row(event, names) for event in events])
    if seal:
        transaction.on_commit(schedule_seal, robust=True)


def _row(event: Event, names: Mapping[UUID, str]) -> AuditEvent:
    actor, chat = event.actor, event.concerns()
    pseudonym = names[chat] if chat else ""
    is_chat = event.object_type == "chat"
    details = dict(event.details)
    if actor.on_behalf_of is not None:
        details["on_behalf_of"] = names[actor.on_behalf_of]
    return AuditEvent(
        action=event.action,
        actor_kind=actor.kind,
        actor=names[actor.chat_id] if actor.chat_id else actor.name,
        chat=pseudonym,
        object_type=event.object_type,
        object_id=pseudonym if is_chat and event.object_id else str(event.object_id),
        content_hash=event.content_hash,
        details=details,
    )


# Enqueue sealing of the events that were just committed.

TASK = "memoryproject.foundation.audit.tasks.seal"


def schedule_seal() -> None:
    """Enqueue a sealing job, unless one is already waiting.

    AuditSealJob's row marks that a job is waiting; the job deletes the row before it looks for
    events. If a job is lost, the scheduled one deletes the row, so that the queue is tried at most
    once a minute while it is down. Runs after a commit: an error here affects no transaction.
    """
    _mark, is_new = AuditSealJob.objects.get_or_create(pk=1)
    if is_new:
        enqueue(TASK, task_name="seal audit events", save=False)


# Audit events for changes that staff make in the admin.


def staff_actor(request: HttpRequest) -> Actor:
    """Return the logged-in staff member as an actor."""
    return Actor("staff", request.user.get_username())


def staff_record(
    request: HttpRequest,
    action: str,
    object_type: str = "",
    object_id: object = "",
    *,
    chat_id: UUID | None = None,
    **details: Any,
) -> None:
    """Record what the logged-in staff member does: see ``audit_record``."""
    audit_record(action, staff_actor(request), object_type, object_id, **details, chat_id=chat_id)


def staff_read_record(request: HttpRequest, *about: Any, **details: Any) -> None:
    """Record that staff were shown what people said, or what was remembered of them."""
    staff_record(request, "conversation.read", *about, **details)


def staff_edit_record(
    request: HttpRequest,
    action: str,
    object_type: str,
    object_id: object,
    fields: Sequence[str],
    *,
    chat_id: UUID | None = None,
) -> None:
    """Record that a saved form changed these fields. Records nothing if it changed none."""
    if fields:
        changed = sorted(fields)
        staff_record(request, action, object_type, object_id, chat_id=chat_id, fields=changed)


def list_export_record(request: HttpRequest, name: str, rows: int) -> None:
    """Record that staff took a list as a file. ``name``: the list's model."""
    filters = sorted({*request.GET} - {PARAMETER})
    staff_record(request, "export", "list", list=name, rows=rows, filters=filters)


# Logins to the admin, and failed ones.


def typed_name_mark(key: str, name: str) -> str:
    """Return the keyed mark that is stored instead of a name typed at a login.

    People type passwords there. The same name has the same mark.
    """
    return sign(key, "typed name", name)


@receiver(user_logged_in, dispatch_uid="audit_login")
def _login_record(user: Any, **_: Any) -> None:
    actor = Actor("staff", user.get_username())
    audit_record("login.success", actor, "user", user.pk)


@receiver(user_login_failed, dispatch_uid="audit_login_failed")
def _failed_login_record(credentials: Mapping[str, Any], **_: Any) -> None:
    audit_record(
        "login.failed",
        Actor("staff"),
        "typed name",
        typed_name_mark(audit_key(), str(credentials.get("username", ""))),
        # "code": the password was right. "password": typed by somebody who is logged in.
        **({"step": credentials["step"]} if "step" in credentials else {}),
    )


# What staff did with one person's data, for the page of that person.

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


# Who events are about, by name. The log itself holds pseudonyms only.

# Chats are another app's. Sent with ``chat_ids``; a receiver returns a Person for each that it has.
chats_shown = Signal()
# Sent with ``text``; a receiver returns the ids of the chats that people mean by it.
chats_meant = Signal()
# A pseudonym can't be looked up without the salts of all people: so many of the newest are tried.
MAX_TRIED = 50_000


class Person(NamedTuple):
    """A person's name, and the address of their page."""

    name: str
    address: str


def people_shown(pseudonyms: Iterable[str]) -> dict[str, Person]:
    """Return who is behind the pseudonyms, as far as these can still be linked to anybody."""
    wanted = set(filter(None, pseudonyms))
    if not wanted:
        return {}
    salts = AuditPerson.objects.order_by("-id").values_list("chat_id", "salt")[:MAX_TRIED]
    key, chats = audit_key(), {}
    for chat_id, salt in salts.iterator():
        name = pseudonym(key, salt)
        if name in wanted:
            chats[name] = chat_id
            if len(chats) == len(wanted):
                break
    known: dict[UUID, Person] = {}
    found: Any
    for _receiver, found in chats_shown.send(None, chat_ids=set(chats.values())):
        known.update(found)
    return {name: known[chat_id] for name, chat_id in chats.items() if chat_id in known}


def pseudonyms_meant(text: str) -> list[str]:
    """Return the pseudonyms of the people that a name, a number or an address means."""
    key = audit_key()
    answers: list[Any] = [found for _receiver, found in chats_meant.send(None, text=text)]
    chats = dict.fromkeys(chat_id for found in answers for chat_id in found)
    return [name for chat_id in chats for name in pseudonyms_of(key=key, chat_id=chat_id)]


# Names of actions and object types for people. The log itself keeps the codes.


_WORDS = read_table(__file__, "words.yaml")
ACTIONS: Mapping[str, Any] = _WORDS["actions"]
ACTOR_KINDS: Mapping[str, Any] = _WORDS["actor_kinds"]
OBJECTS: Mapping[str, Any] = _WORDS["objects"]
FINDINGS: Mapping[str, Any] = _WORDS["findings"]
RESULT: Mapping[str, Any] = _WORDS["result"]


def action_shown(action: str) -> str:
    """Return the action in the reader's language, or its code if it has no translation.

    Actions of an older version may have none.
    """
    return str(ACTIONS.get(action, action))


def object_shown(object_type: str) -> str:
    """Return the object type in the reader's language, or its code if it has no translation."""
    return str(OBJECTS.get(object_type, object_type))
