"""Find what belongs to the addresses that are split off a contact.

A message of the person names the address that it came from. Whole sessions go or stay; a session in
which both wrote is divided. For everything without an address, the record of a merge tells from
which side it came; without one it stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from memories_app.models import Memory, MemoryStatus, SourceDocument
from sessions_app.models import (
    Chat,
    ChatAddress,
    ChatSession,
    ContactMerge,
    Message,
    Note,
    Turn,
)
from sessions_app.models.messages import Role


@dataclass(frozen=True)
class Portion:
    """The rows that go with ``addresses``.

    ``sessions`` go whole. Of ``taken_from``, sessions that stay, the messages in ``taken`` go; of
    ``left_in``, which are among ``sessions``, those in ``left`` stay. ``turns`` belong to no
    session.
    """

    addresses: Sequence[ChatAddress]
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

    def messages(self) -> QuerySet[Message]:
        """Return the messages that go."""
        whole = Message.objects.filter(session__in=self.sessions).exclude(pk__in=self.left)
        return whole | Message.objects.filter(pk__in=self.taken)


def portion_of(
    chat: Chat, addresses: Sequence[ChatAddress], record: ContactMerge | None = None
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
    notes = Note.objects.filter(chat=chat)
    own = documents.filter(Q(pk__in=rows.get("documents", ())) | Q(source_message_id__in=messages))
    files = set(own.values_list("pk", flat=True))
    learned = Q(pk__in=rows.get("memories", ())) | Q(source_message_id__in=messages)
    return Portion(
        addresses=addresses,
        sessions=whole,
        taken_from=taken_from,
        taken=taken,
        left_in=left_in,
        left=left,
        turns=_turns(chat, rows.get("turns", ())),
        memories=set(memories.filter(learned | Q(document__in=files)).values_list("pk", flat=True)),
        documents=files,
        notes=set(
            notes.filter(
                Q(pk__in=rows.get("notes", ()), message=None) | Q(message__in=messages)
            ).values_list("pk", flat=True)
        ),
    )


def memories_in_force(portion: Portion) -> int:
    """Return how many of the memories that go are listed for staff."""
    rows = Memory.objects.filter(pk__in=portion.memories)
    return rows.exclude(status=MemoryStatus.SUPERSEDED).count()


def _sessions(
    chat: Chat, theirs: Collection[str], others: Collection[str], came: Collection[UUID]
) -> tuple[set[UUID], set[UUID], set[UUID]]:
    """Return the sessions that go whole, those of which a part goes, and of which a part stays.

    ``came``: those that a merge brought along: they go with what has no address in them.
    """
    by_person = Q(messages__role=Role.USER)
    counted = ChatSession.objects.filter(chat=chat).annotate(
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
    written = Message.objects.filter(where, role=Role.USER, sender__in=senders)
    keys = set(written.values_list("pk", flat=True))
    answers = Message.objects.filter(where).filter(
        Q(answers__in=keys) | Q(answers=None, role=Role.ASSISTANT, recipient__in=senders)
    )
    return keys | set(answers.values_list("pk", flat=True))


def _turns(chat: Chat, keys: Collection[int]) -> set[int]:
    turns = Turn.objects.filter(chat=chat, session=None, pk__in=keys)
    return set(turns.values_list("pk", flat=True))
