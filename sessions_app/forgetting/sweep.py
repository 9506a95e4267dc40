"""The sweep of one forgetting: what is erased, and the edits that its steps share."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from cards_app.models import MemoryCard
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.outgoing_webhooks.deliveries import HookEvent
from memoryproject.foundation.retrieval.fragments import MARK, Fragments
from sessions_app import models
from sessions_app.cards.card_recall import cards_retract
from sessions_app.conversations import epochs, redact_derived, session_lifecycle
from sessions_app.conversations.preview_recorder import ChangeKind, PreviewRecorder
from sessions_app.forgetting.deletion_plan import DeletionPlan
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.recall.facade import CLIENT_NAME, CLIENTS_MEMORY, MEMORY
from sessions_app.summaries.summary_store import summaries_retract
from sessions_app.transcript_files.backups import Backups

ROWS_AT_ONCE = 200


@dataclass(frozen=True)
class Trace:
    """A row that stays and holds an erased text or names what was erased. The sweep removes it."""

    model: type[Model]
    key: object
    remove: Callable[[], object]


@dataclass(frozen=True)
class ForgetDependencies:
    """The dependencies of a forgetting.

    ``chat_memory`` rewrites the history of conversations.
    ``transcripts`` is the store of backups that may hold the text, too. ``documents`` is the store
    where files wait until they are read. ``recorder`` records what goes, for the preview that staff
    confirm.
    """

    chat_memory: ChatMemoryService
    transcripts: Backups | None = None
    documents: Path | None = None
    recorder: PreviewRecorder = field(default_factory=PreviewRecorder)


@dataclass
class Sweep:
    """The state of one forgetting, within its transaction, with all scopes locked.

    ``receipt`` isn't stored yet. ``events``: what integrators are sent besides the events of
    memories. ``keep_turn`` is the turn that asks for the forgetting and isn't cancelled. ``check``
    is called with the memories locked.

    ``texts`` are searched in what belongs to no chat. ``ids`` are the objects that go.
    ``swept`` counts rows by table, ``left`` names what could not be removed.
    ``emptied_chats`` are the chats in which messages were deleted, ``deleted_messages`` the
    providers' ids of these messages. ``rewritten`` are the ids of answers and turns that stay with
    less text. ``card_sessions`` are the sessions whose cards were deleted,
    ``summaries`` the texts of the retracted summaries of each session.
    """

    receipt: models.ForgetReceipt
    events: Sequence[HookEvent]
    plan: DeletionPlan
    dependencies: ForgetDependencies
    held: epochs.Held
    actor: Actor
    keep_turn: int | None
    check: Callable[[], None] | None
    now: datetime = field(default_factory=timezone.now)
    swept: Counter[str] = field(default_factory=Counter)
    left: list[dict[str, str]] = field(default_factory=list)
    emptied_chats: set[UUID] = field(default_factory=set)
    deleted_messages: set[tuple[str, str]] = field(default_factory=set)
    rewritten: set[str] = field(default_factory=set)
    card_sessions: set[str] = field(default_factory=set)
    summaries: defaultdict[UUID, set[str]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self.chat_memory = self.dependencies.chat_memory
        self.recorder = self.dependencies.recorder
        self.texts = Fragments(self.plan.texts)
        self.ids = {*self.plan.ids(), str(self.receipt.object_id)}
        self._counted: set[tuple[str, Any]] = set()

    def counts(self) -> dict[str, int]:
        """Return the swept rows as a receipt has them."""
        return {table: rows for table, rows in sorted(self.swept.items()) if rows}

    def count(self, model: type[Model], rows: int) -> None:
        """Add to the count of deleted or redacted rows of a table."""
        if rows:
            self.swept[model._meta.db_table] += rows

    def count_once(self, model: type[Model], key: Any) -> None:
        """Count a row that several steps may redact."""
        row = (model._meta.db_table, key)
        if row not in self._counted:
            self._counted.add(row)
            self.count(model, 1)

    def empty_deliveries(self, deliveries: QuerySet[models.InboundDelivery]) -> None:
        """Empty the providers' raw bodies; what a worker has still to redact stays until it has."""
        ordered = Q(change__has_key=redact_derived.REDACT)
        full = deliveries.filter(Q(raw__isnull=False) | Q(change__isnull=False) & ~ordered)
        keys = list(full.values_list("pk", flat=True))
        emptied = models.InboundDelivery.objects.filter(pk__in=keys).update(raw=None)
        models.InboundDelivery.objects.filter(pk__in=keys).exclude(ordered).update(change=None)
        self.recorder.add_count(ChangeKind.DELIVERY, emptied)
        self.count(models.InboundDelivery, emptied)

    def remove_quote(self, message: models.Message) -> None:
        """Remove the quotation from a message that stays."""
        quoted = message.metadata["quoted"]
        text = quoted.get("text", "") if isinstance(quoted, dict) else str(quoted)
        self.recorder.record(ChangeKind.QUOTE, message.pk, text)
        metadata = {key: value for key, value in message.metadata.items() if key != "quoted"}
        models.Message.objects.filter(pk=message.pk).update(metadata=metadata)
        self.empty_deliveries(models.InboundDelivery.objects.filter(message=message))
        self.count_once(models.Message, message.pk)

    def retract_summaries(self, session: models.ChatSession, order_num: int) -> bool:
        """Retract the summaries that cover a message; return whether there were any."""
        before = session.summarizations.count()
        texts = summaries_retract(session=session, order_num=order_num)
        self.summaries[session.pk].update(texts)
        for text in texts:
            # A sentence is shown with its summary.
            if not any(text != other and text in other for other in texts):
                self.recorder.record(ChangeKind.SUMMARY, text, text)
        gone = before - session.summarizations.count()
        self.count(models.SummarizationMetadata, gone)
        return gone > 0

    def retext(self, message: models.Message, kind: ChangeKind, content: str) -> None:
        """Replace the text of a message that stays, and retract what was made of the old one."""
        self.recorder.record(kind, message.pk, message.content, left=content)
        self.delete_card(message.session)
        session = models.ChatSession.objects.select_for_update(no_key=True).get(
            pk=message.session_id
        )
        if self.retract_summaries(session, message.order_num):
            # They are made again from the rest.
            self.chat_memory.manage_after_commit(session)
        self.chat_memory.retext(message=message, content=content)
        self.rewritten.add(str(message.pk))
        self.count_once(models.Message, message.pk)

    def retold(self, chat_id: UUID, texts: Iterable[str]) -> None:
        """Search also for what an answer made of the texts: it may be quoted in its chat."""
        for text in texts:
            self.plan.texts_by_chat[chat_id].add(text)
            self.texts.add(text)

    def delete_card(self, session: models.ChatSession) -> None:
        """Delete the card of a session whose messages change, and remove it from replays.

        It is made again from the remaining messages.
        """
        locked = models.ChatSession.objects.select_for_update(no_key=True).get(pk=session.pk)
        self.card_sessions.add(str(locked.pk))
        for card in MemoryCard.objects.filter(pk=locked.pk).only("title"):
            self.recorder.record(ChangeKind.CARD, card.pk, card.title)
        self.count(MemoryCard, session_lifecycle.cards_outdate(session_ids=[locked.pk]))
        cards_retract(chat_id=locked.chat_id, session_ids=[locked.pk])


# Find which answers were given which erased texts, by the turns' own records.


class Lineage:
    """Which answers were given which erased texts.

    Build it before the messages are deleted. ``texts_by_id``: see DeletionPlan; the parts that are
    cut out of an answer are stated by that answer from then on.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self.texts_by_id = sweep.plan.texts_by_id
        self.ids = set(sweep.ids)
        # The erased texts that each id carries: an object its own, an answer those it was given.
        self._carried: defaultdict[str, set[str]] = defaultdict(set)
        for key in self.ids & self.texts_by_id.keys():
            self._carried[key].add(key)
        # The same of each session, from a place in it on.
        self._in_session: defaultdict[UUID, list[tuple[int, set[str]]]] = defaultdict(list)
        # Of the deleted messages that turns answered: the id, and the place in the session.
        self._answered: dict[int, tuple[str, int]] = {}
        messages = models.Message.objects.filter(pk__in=sweep.plan.messages)
        rows = messages.values_list("pk", "session_id", "order_num", "turn__id", "role")
        for key, session_id, order_num, turn_id, role in rows.iterator():
            if turn_id is not None:
                self._answered[turn_id] = str(key), order_num
            after = 0 if role == models.Role.USER else 1
            self._in_session[session_id].append((order_num + after, {str(key)}))
            self._carried[str(session_id)].add(str(key))

    def given(
        self, turn: models.Turn, replay: models.TurnReplay, seen: Collection[str] | None
    ) -> set[str]:
        """Return the ids of the erased objects and redacted answers whose texts a turn had.

        ``seen``: the messages whose pictures its model saw; None if no model was asked, such as
        for a command, which reads nothing of its session.
        """
        named = set(seen or ())
        if turn.pk in self._answered:
            named.add(self._answered[turn.pk][0])
        keys = self.listed(replay)
        keys |= {key for name in named & self._carried.keys() for key in self._carried[name]}
        if turn.session_id is not None and seen is not None:
            place = self._place(turn)
            for since, handed_on in self._in_session[turn.session_id]:
                keys |= handed_on if since <= place else set()
        return keys

    def listed(self, replay: models.TurnReplay) -> set[str]:
        """Return the same of what was recalled for a turn, and what it listed."""
        named = {*objects_named(replay.recalled), *replay.shown}
        return {key for name in named & self._carried.keys() for key in self._carried[name]}

    def hand_on(self, turn: models.Turn, keys: set[str], removed: Collection[str]) -> None:
        """Record that later turns may have the texts from this turn's answer."""
        if turn.reply_id is not None:
            answer = str(turn.reply_id)
            self.texts_by_id[answer].update(removed)
            keys = keys | {answer}
            self._carried[answer] |= keys
        if turn.session_id is not None:
            self._in_session[turn.session_id].append((self._place(turn) + 1, keys))
            self._carried[str(turn.session_id)] |= keys

    def _place(self, turn: models.Turn) -> int:
        """Return the place of the answered message in its session."""
        if turn.message is not None:
            return turn.message.order_num
        if turn.pk in self._answered:
            return self._answered[turn.pk][1]
        # Its message was deleted before: the answer stands behind it.
        return turn.reply.order_num - 1 if turn.reply is not None else 0


# Read the entries of a replay record: what was recalled for an answer. Pure.


# The neighbours of a recalled message, by their names in the replay record.
BESIDE = ("before", "after")
# How a card is named in the replay record.
CARDS = "cards"


def objects_named(recalled: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the ids of what was recalled, and of what stood beside it."""
    for entry in recalled:
        yield str(entry.get("id"))
        if entry.get("source") == CARDS:
            yield str(entry.get("session_id"))
        yield from (str(entry[name].get("message_id")) for name in BESIDE if name in entry)


def entries_of(recalled: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what was recalled, each with what stood beside it."""
    for entry in recalled:
        yield entry
        yield from (entry[name] for name in BESIDE if name in entry)


def names_removed(
    prompt: Sequence[dict[str, Any]],
    recalled: Sequence[dict[str, Any]],
    *,
    goes: Callable[[dict[str, Any]], bool],
) -> list[dict[str, Any]]:
    """Return a prompt without the names of the clients whose erased memories it held.

    ``goes`` says of an entry whether its memory was erased.
    """
    named = [entry for entry in recalled if CLIENT_NAME in entry]
    staying = {entry[CLIENT_NAME] for entry in named if not goes(entry)}
    lines = list(prompt)
    for name in {entry[CLIENT_NAME] for entry in named if goes(entry)}:
        # Beside a memory that stays, only the label of what is cut.
        cut = rf"(?=[^()\n]+\) {re.escape(MARK)})" if name in staying else ""
        label = re.compile(rf"\({re.escape(CLIENTS_MEMORY + name)}, {cut}")
        for place, line in enumerate(lines):
            if line.get("role") == "system" and line["content"]:
                content = label.sub(f"({MEMORY}, ", line["content"])
                lines[place] = {**line, "content": content}
    return lines
