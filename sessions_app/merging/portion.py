"""Find what belongs to the addresses that are split off a contact.

A message of the person names the address that it came from. Whole sessions go or stay; a session in
which both wrote is divided. For everything without an address, the record of a merge tells from
which side it came; without one it stays.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from cards_app.models import MemoryCard
from memories_app.models import Memory, MemoryStatus, SourceDocument
from sessions_app import models
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.inbox.read_markers import later_assignment


@dataclass(frozen=True)
class Portion:
    """The rows that go with ``addresses``.

    ``sessions`` go whole. Of ``taken_from``, sessions that stay, the messages in ``taken`` go; of
    ``left_in``, which are among ``sessions``, those in ``left`` stay. ``turns`` belong to no
    session.
    """

    addresses: Sequence[models.ChatAddress]
    sessions: Collection[UUID] = ()
    taken_from: Collection[UUID] = ()
    taken: Collection[UUID] = ()
    left_in: Collection[UUID] = ()
    left: Collection[UUID] = ()
    turns: Collection[int] = ()
    memories: Collection[UUID] = field(default=())
    documents: Collection[UUID] = field(default=())
    notes: Collection[UUID] = field(default=())

    @property
    def divided(self) -> list[UUID]:
        """Return the sessions in which both wrote."""
        return sorted({*self.taken_from, *self.left_in})

    def messages(self) -> QuerySet[models.Message]:
        """Return the messages that go."""
        whole = models.Message.objects.filter(session__in=self.sessions).exclude(pk__in=self.left)
        return whole | models.Message.objects.filter(pk__in=self.taken)


def portion_of(
    chat: models.Chat,
    addresses: Sequence[models.ChatAddress],
    record: models.ContactMerge | None = None,
) -> Portion:
    """Return what goes with these addresses. ``record``: the merge that is undone."""
    theirs = {link.address for link in addresses}
    others = {link.address for link in chat.addresses.all()} | {chat.whatsapp_chat}
    others -= theirs
    came = {UUID(key) for key in record.rows["sessions"]} if record else set()
    whole, taken_from, left_in = _sessions(chat, theirs, others, came)
    # Both sides of a divided session, by who wrote the messages.
    taken = _with_answers(Q(session__in=taken_from), theirs)
    left = _with_answers(Q(session__in=left_in), others)
    portion = Portion(addresses, whole, taken_from, taken, left_in, left)
    messages = portion.messages().values("pk")
    rows = record.rows if record else {}
    memories = Memory.objects.filter(chat_id=chat.pk)
    documents = SourceDocument.objects.filter(chat_id=chat.pk)
    notes = models.Note.objects.filter(chat=chat)
    own = documents.filter(Q(pk__in=rows.get("documents", ())) | Q(source_message_id__in=messages))
    files = set(own.values_list("pk", flat=True))
    learned = Q(pk__in=rows.get("memories", ())) | Q(source_message_id__in=messages)
    return replace(
        portion,
        turns=_turns(chat, rows.get("turns", ())),
        memories=set(memories.filter(learned | Q(document__in=files)).values_list("pk", flat=True)),
        documents=files,
        notes=set(
            notes.filter(
                Q(pk__in=rows.get("notes", ()), message=None) | Q(message__in=messages)
            ).values_list("pk", flat=True)
        ),
    )


def _sessions(
    chat: models.Chat, theirs: Collection[str], others: Collection[str], came: Collection[UUID]
) -> tuple[set[UUID], set[UUID], set[UUID]]:
    """Return the sessions that go whole, those of which a part goes, and of which a part stays.

    ``came``: those that a merge brought along: they go with what has no address in them.
    """
    by_person = Q(messages__role=models.Role.USER)
    counted = models.ChatSession.objects.filter(chat=chat).annotate(
        theirs=Count("messages", filter=by_person & Q(messages__sender__in=theirs)),
        others=Count("messages", filter=by_person & Q(messages__sender__in=others)),
    )
    whole, taken_from, left_in = set(), set(), set()
    for key, own, rest in counted.values_list("pk", "theirs", "others"):
        if key in came or (own and not rest):
            whole.add(key)
            if rest:
                left_in.add(key)
        elif own:
            taken_from.add(key)
    return whole, taken_from, left_in


def _with_answers(where: Q, senders: Collection[str]) -> set[UUID]:
    """Return the messages from and to these addresses, with the answers to them."""
    written = models.Message.objects.filter(where, role=models.Role.USER, sender__in=senders)
    keys = set(written.values_list("pk", flat=True))
    answers = models.Message.objects.filter(where).filter(
        Q(answers__in=keys) | Q(answers=None, role=models.Role.ASSISTANT, recipient__in=senders)
    )
    return keys | set(answers.values_list("pk", flat=True))


def _turns(chat: models.Chat, keys: Collection[int]) -> set[int]:
    turns = models.Turn.objects.filter(chat=chat, session=None, pk__in=keys)
    return set(turns.values_list("pk", flat=True))


# Read what one contact holds, for the preview of a merge or of a split.

COUNTED = ("sessions", "messages", "memories", "documents", "cards", "notes")


@dataclass(frozen=True)
class ContactSide:
    """One contact. ``counts``: how many of each name in COUNTED it has.

    ``role``: client or godfather. ``talking``: its session is active.
    """

    chat: models.Chat
    addresses: Sequence[models.ChatAddress]
    counts: dict[str, int]
    role: str
    last_at: datetime | None = None
    talking: bool = False
    labels: Sequence[models.Label] = field(default=())
    assignment: models.Assignment | None = None
    pause: models.ChatPause | None = None
    access: models.ChatAccess | None = None

    @property
    def names(self) -> list[str]:
        return [name for name in (self.chat.staff_name, self.chat.client_name) if name]

    def stamp_values(self) -> list[Any]:
        """Return what was seen of this contact, as plain values."""
        chat, access, pause = self.chat, self.access, self.pause
        decided = (access.standing, access.opted_out_at is not None) if access else ("", False)
        return [
            str(chat.pk),
            [chat.whatsapp_chat, chat.client_name, chat.staff_name, str(chat.memory_enabled)],
            [(link.pk, link.address, link.left_at is None) for link in self.addresses],
            self.counts,
            self.talking,
            [label.pk for label in self.labels],
            self.assignment.assignee_id if self.assignment else None,
            (pause.since.isoformat(), str(pause.until)) if pause else None,
            decided,
        ]


def side_read(chat: models.Chat, *, chat_memory: ChatMemoryService) -> ContactSide:
    """Return what the contact holds now."""
    addresses = list(chat.addresses.all())
    current = [link.address for link in addresses if link.left_at is None]
    key = chat.pk
    memories = Memory.objects.filter(chat_id=key).exclude(status=MemoryStatus.SUPERSEDED)
    sessions = models.ChatSession.objects.filter(chat=key)
    activity = models.ChatActivity.objects.filter(chat=key).first()
    return ContactSide(
        chat=chat,
        addresses=addresses,
        counts={
            "sessions": sessions.count(),
            "messages": models.Message.objects.filter(chat=key).count(),
            "memories": memories.count(),
            "documents": SourceDocument.objects.filter(chat_id=key).count(),
            "cards": MemoryCard.objects.filter(chat_id=key).count(),
            "notes": models.Note.objects.filter(chat=key).count(),
        },
        role=chat_memory.role_in(chat, addresses=current),
        last_at=activity.last_at if activity else None,
        talking=sessions.filter(status=models.SessionStatus.ACTIVE).exists(),
        labels=list(models.Label.objects.filter(chat_labels__chat=key)),
        assignment=later_assignment(key),
        pause=models.ChatPause.objects.filter(chat=key).first(),
        access=models.ChatAccess.objects.filter(chat=key).first(),
    )
