"""Put together everything kept about a person as a page that they can read.

It holds what the data export holds of texts and names. That export also has the technical
records: answers with their prompts, raw deliveries, vectors' keys.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import Prefetch, QuerySet

from cards_app.models import MemoryCard
from memories_app.models import Memory, MemoryRevision, SourceDocument
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.redaction.redact import redact, redact_data
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.models import Chat, ChatAddress, Message, Note
from sessions_app.models.messages import Role
from sessions_app.person.person_pages import sections_shown
from sessions_app.presentation.message_kinds import SOMEBODY, Kind, kind_of, text_got

ROWS_AT_ONCE = 200
# A piece of the page: the name of its template, and the values that this shows.
Part: TypeAlias = tuple[str, dict[str, Any]]
# The fields of records that hold what people wrote, names included.
_TEXTS = {
    *("content", "history", "text", "title", "name", "sender", "summary_bullets"),
    *("decisions", "todos", "client_name", "staff_name", "whatsapp_chat"),
    *("namespace", "key", "value"),
}
# A card's points begin with the role of who said them.
_SPEAKER = re.compile(r"^\[\w+\] ")


@dataclass(frozen=True)
class CardLines:
    """A card of the page. Its quotes are among what was said."""

    card: MemoryCard

    @property
    def lines(self) -> list[str]:
        """Return its points, each once, without the code of who said it."""
        points = [*self.card.summary_bullets, *self.card.decisions, *self.card.todos]
        return list(dict.fromkeys(_SPEAKER.sub("", point) for point in points))


@dataclass
class Said:
    """A message of the page. ``opens``: it is the first of its conversation."""

    message: Message
    sender: str
    kind: Kind | None
    opens: bool

    @property
    def is_persons(self) -> bool:
        return self.message.role == Role.USER

    @property
    def text(self) -> str:
        return text_got(self.message)

    @property
    def is_summary(self) -> bool:
        return self.message.role == Role.SUMMARY


def readable_export(*, chat: Chat, actor: Actor, redacted: bool = False) -> Iterator[Part]:
    """Yield the parts of the page in order, a few rows at a time, redacted if asked.

    The export is audited before the first part is made.
    """
    with transaction.atomic():
        more: dict[str, Any] = {"redacted": True} if redacted else {}
        audit_record(
            "export",
            actor,
            "chat",
            chat.pk,
            messages=chat.messages.count(),
            everything=True,
            page=True,
            **more,
        )
    return map(_redacted, _parts(chat)) if redacted else _parts(chat)


def _redacted(part: Part) -> Part:
    """Redact the texts of the part's records, which nobody stores."""
    name, values = part
    for section in values.get("sections", ()):
        section["lines"] = [
            (replace(line, text=redact(line.text)), topic) for line, topic in section["lines"]
        ]
    rows = list(values.get("rows", ()))
    for row in rows:
        for record in (row, getattr(row, "message", None), getattr(row, "card", None)):
            _redact_fields(record)
        for revision in row.revisions.all() if isinstance(row, Memory) else ():
            _redact_fields(revision)
    if "chat" in values:
        _redact_fields(values["chat"])
        shown = [(row, redact(number)) for row, number in values["addresses"]]
        values = {**values, "addresses": shown, "redacted": True}
    return name, values


def _redact_fields(record: Any) -> None:
    for name in _TEXTS & vars(record).keys() if record is not None else ():
        setattr(record, name, redact_data(getattr(record, name)))


def _parts(chat: Chat) -> Iterator[Part]:
    key = chat.pk
    yield "head", {"chat": chat, "addresses": addresses_of(chat)}
    if sections := sections_shown(chat, True, True):
        yield "person", {"sections": sections}
    earlier = Prefetch("revisions", MemoryRevision.objects.order_by("number"))
    memories = memories_for_staff().filter(chat_id=key).defer("terms", "likeness")
    rows: list[tuple[str, QuerySet[Any]]] = [
        ("memories", memories.prefetch_related(earlier).order_by("created_at", "memory_id")),
        ("documents", SourceDocument.objects.filter(chat_id=key).order_by("created_at")),
        ("notes", Note.objects.filter(chat=key).order_by("created_at", "note_id")),
    ]
    for name, queryset in rows:
        yield from _listed(name, queryset.iterator(ROWS_AT_ONCE))
    cards = MemoryCard.objects.filter(chat_id=key).order_by("session_started_at")
    yield from _listed("cards", map(CardLines, cards.iterator(ROWS_AT_ONCE)))
    messages = Message.objects.filter(chat=key).select_related("session").defer("terms")
    in_order = messages.order_by("session__created_at", "session_id", "order_num")
    yield from _listed("messages", _said(chat, in_order.iterator(ROWS_AT_ONCE)))
    yield "foot", {}


def _listed(name: str, rows: Iterator[Any]) -> Iterator[Part]:
    """Yield a list in pieces; one that is empty is said to be so."""
    is_first = True
    while (some := list(islice(rows, ROWS_AT_ONCE))) or is_first:
        yield name, {"rows": some, "is_first": is_first}
        is_first = False


def _said(chat: Chat, messages: Iterator[Message]) -> Iterator[Said]:
    session: UUID | None = None
    for message in messages:
        opens, session = message.session_id != session, message.session_id
        yield Said(message, _sender(chat, message), kind_of(message.kind), opens)


def _sender(chat: Chat, message: Message) -> str:
    if message.metadata.get("by_hand"):
        # The person has no claim to the names of staff.
        return str(SOMEBODY)
    if message.role != Role.USER:
        return str(message.get_role_display())
    return str(message.metadata.get("sender_name") or chat.client_name or chat.whatsapp_chat)


def addresses_of(chat: Chat) -> list[tuple[ChatAddress, str]]:
    """Return all addresses of the person as people read them, also those they left."""
    return [(row, number_shown(row.address)) for row in chat.addresses.all()]
