"""Redact texts in everything derived from them.

These are answers, replays, summaries, raw deliveries, answers that wait to be sent, results of
queued work, and the admin's own log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Model, Q, QuerySet, Sum

from cards_app.models import MemoryCard
from memoryproject.foundation.retrieval.fragments import MARK, Fragments
from sessions_app.cards.facade import cards_retract
from sessions_app.conversations.facade import (
    ChangeKind,
    Held,
    PreviewRecorder,
    Scopes,
    cards_outdate,
    chat_scope,
    parse_command,
)
from sessions_app.forgetting.deletion_plan import BESIDE, DeletionPlan
from sessions_app.forgetting.redact_unscoped import RestSweep
from sessions_app.history.facade import ChatMemoryService
from sessions_app.models import (
    ChatSession,
    ExtractionWork,
    InboundDelivery,
    Message,
    MessageEmbedding,
    Note,
    OutboundPart,
    SummarizationMetadata,
    Turn,
    TurnReplay,
)
from sessions_app.models.messages import Role
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import ANSWERABLE_STATES, WAITING_STATES, TurnState
from sessions_app.summaries.facade import summaries_retract

ROWS_AT_ONCE = 200

# Each round may find another text that repeats it; a chain of this length was never seen.
MAX_ROUNDS = 10

# The fields of a turn and its replay that hold texts.
TURN_TEXTS = ("context", "error", "unstored_text", "unstored_reply")

REPLAY_TEXTS = ("prompt", "recalled", "shown", "left_out")


class Sweep:
    """The redaction of one forgetting, within its transaction.

    ``texts`` are searched everywhere. ``words`` are searched only in ``reached``, the answers that
    had any of the objects in reach. ``keep_turn`` is the turn that asks for the forgetting and
    isn't cancelled. ``swept`` counts rows by table; ``recorder`` records the changes for the
    preview. ``emptied_chats`` are the chats in which messages were deleted.
    """

    def __init__(
        self,
        *,
        chat_memory: ChatMemoryService,
        plan: DeletionPlan,
        object_id: UUID,
        recorder: PreviewRecorder,
        held: Held,
        keep_turn: int | None = None,
        now: datetime,
    ) -> None:
        self.texts = Fragments(plan.texts)
        self.words = plan.words()
        self.reached: set[UUID] = set()
        self.swept: Counter[str] = Counter()
        self.emptied_chats: set[UUID] = set()
        self._chat_memory = chat_memory
        self._plan = plan
        self._ids = {*plan.ids(), str(object_id)}
        self._recorder = recorder
        self._held = held
        self._subjects: set[tuple[str, str]] = set()
        self._keep_turn = keep_turn
        self._now = now
        self._emptied: set[tuple[str, Any]] = set()
        self._carded: set[str] = set()

    def count(self, model: type[Model], rows: int) -> None:
        """Add to the count of deleted or redacted rows of a table."""
        if rows:
            self.swept[model._meta.db_table] += rows

    def out_of_chats(self, chat_ids: Collection[UUID], *, since: datetime) -> None:
        """Redact the texts in everything that these chats derived from them since then."""
        for _ in range(MAX_ROUNDS):
            if not self._once(chat_ids, since):
                return

    def out_of_notes(self) -> None:
        """Redact the texts in notes of other chats that quote them.

        Raises ScopesGrewError if such a chat isn't locked.
        """
        self._notes()

    def out_of_the_rest(self) -> None:
        """Redact the texts in records that belong to no chat. Call it after ``rest_begin``."""
        for provider, subject in sorted(self._subjects):
            about = InboundDelivery.objects.filter(provider=provider, subject_id=subject)
            self._raw(about)
        if self.texts and self._plan.since is not None:
            self._deliveries(InboundDelivery.objects.filter(chat__isnull=True), self._plan.since)
        rest = RestSweep(
            texts=self.texts,
            ids=self._ids,
            erased=self._plan.erased,
            names=self._plan.names,
            carded=self._carded,
        )
        rest.sweep()
        self.swept.update(rest.swept)

    def out_of_who_asked(self) -> None:
        """Redact the command that asks for the forgetting, because it names the text."""
        asked = Message.objects.filter(turn__pk=self._keep_turn, metadata__has_key="command")
        for message in asked.select_related("chat", "session") if self._keep_turn else ():
            self._empty_command(message)

    def messages_delete(self, messages: QuerySet[Message]) -> None:
        """Delete messages with their vectors and raw deliveries.

        Summaries that cover them are retracted, and turns that wait to answer them are cancelled.
        """
        found = list(messages.order_by("session_id", "order_num").defer("terms"))
        ids = [message.pk for message in found]
        if not ids:
            return
        self.emptied_chats.update(message.chat_id for message in found)
        for key, text in Note.objects.filter(message__in=ids).values_list("pk", "text"):
            self._recorder.record(ChangeKind.NOTE, key, text)
        notes, _ = Note.objects.filter(message__in=ids).delete()
        self.count(Note, notes)
        waiting = Turn.objects.filter(message__in=ids, state__in=ANSWERABLE_STATES)
        turns_move(
            waiting.exclude(pk=self._keep_turn),
            TurnState.CANCELLED,
            finished_at=self._now,
            lease_token=None,
        )
        self._raw(InboundDelivery.objects.filter(message__in=ids))
        for message in found:
            self._recorder.record(ChangeKind.MESSAGE, message.pk, message.content)
            if message.provider_message_id:
                self._subjects.add((message.provider, message.provider_message_id))
        self._quotes(found)
        first: dict[UUID, int] = {}
        for message in found:
            first.setdefault(message.session_id, message.order_num)
        for session_id, order_num in first.items():
            session = ChatSession.objects.select_for_update(no_key=True).get(pk=session_id)
            self._retract(session, order_num)
            self._cards_away(session)
            here = Message.objects.filter(pk__in=ids, session=session)
            in_window = here.filter(order_num__gte=session.window_start)
            session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
            session.save(update_fields=["total_tokens"])
            self._count_deleted(here.delete()[1])
            self._chat_memory.manage_after_commit(session)
        self.count(Message, len(ids))

    def _count_deleted(self, rows: dict[str, int]) -> None:
        """Count the rows that were deleted by cascade and aren't counted elsewhere."""
        for label, count in rows.items():
            model = apps.get_model(label)
            if model not in (Message, MessageEmbedding):
                self.count(model, count)

    def _quotes(self, gone: Collection[Message]) -> None:
        """Redact quotes of deleted messages in the remaining messages, and keep their own words."""
        by_chat: dict[UUID, list[str]] = {}
        for message in gone:
            if message.provider_message_id:
                by_chat.setdefault(message.chat_id, []).append(message.provider_message_id)
        ids = [message.pk for message in gone]
        for chat_id, keys in by_chat.items():
            quoting = Message.objects.filter(
                chat_id=chat_id, metadata__has_key="quoted", metadata__reply_to_id__in=keys
            )
            for message in quoting.exclude(pk__in=ids).only("metadata"):
                self._unquote(message)

    def _unquote(self, message: Message) -> None:
        quoted = message.metadata["quoted"]
        text = quoted.get("text", "") if isinstance(quoted, dict) else str(quoted)
        self._recorder.record(ChangeKind.QUOTE, message.pk, text)
        metadata = {key: value for key, value in message.metadata.items() if key != "quoted"}
        Message.objects.filter(pk=message.pk).update(metadata=metadata)
        self._raw(InboundDelivery.objects.filter(message=message))
        self._count_once(Message, message.pk)

    def _once(self, chat_ids: Collection[UUID], since: datetime) -> bool:
        """Make one pass over everything; return whether it found further texts to search for."""
        further = False
        retold = self._replays(chat_ids, since)
        messages = Message.objects.filter(chat_id__in=list(chat_ids), received_at__gte=since)
        for message in _in_batches(messages.filter(role=Role.ASSISTANT)):
            is_retelling = message.pk in retold or "system_text" in message.metadata
            if is_retelling or self.texts.are_in(message.content):
                further |= self._rewrite_answer(message)
        for message in messages.filter(metadata__has_key="quoted").only("metadata"):
            quoted = message.metadata["quoted"]
            if self.texts.cleaned(quoted) != quoted:
                self._unquote(message)
        for message in _in_batches(messages.filter(metadata__has_key="command")):
            if self.texts.are_in(message.content):
                self._empty_command(message)
        further |= self._summaries(chat_ids)
        self._extractions(chat_ids)
        self._parts(chat_ids)
        self._notes(chat_ids)
        self._deliveries(InboundDelivery.objects.filter(chat__in=list(chat_ids)), since)
        return further

    def _replays(self, chat_ids: Collection[UUID], since: datetime) -> set[UUID]:
        """Redact the replays of turns; return the affected answers.

        They are the answers of redacted turns, and those that had any of the objects in reach.
        """
        turns = Turn.objects.filter(chat_id__in=list(chat_ids)).filter(
            Q(created_at__gte=since) | Q(state__in=WAITING_STATES)
        )
        answers = set()
        fields = [*TURN_TEXTS, *(f"replay__{name}" for name in REPLAY_TEXTS)]
        found = turns.select_related("replay").only("id", "reply", *fields)
        for turn in found.iterator(ROWS_AT_ONCE):
            replay = TurnReplay.of(turn)
            had_it = self._had_in_reach(replay)
            if had_it and turn.reply_id is not None:
                self.reached.add(turn.reply_id)
            if self._clean_replay(turn, replay, had_it=had_it):
                self._recorder.record(ChangeKind.REPLAY, turn.pk)
                self._count_once(Turn, turn.pk)
                if turn.reply_id is not None:
                    answers.add(turn.reply_id)
        return answers | self.reached

    def _clean_replay(self, turn: Turn, replay: TurnReplay, *, had_it: bool) -> bool:
        """Redact a turn and its replay; return whether there was anything to redact."""
        kept = {name: getattr(turn, name) for name in TURN_TEXTS}
        clean = {name: self._cleaned(value, had_it) for name, value in kept.items()}
        kept_replay = {name: getattr(replay, name) for name in REPLAY_TEXTS}
        clean_replay = {name: self._cleaned(value, had_it) for name, value in kept_replay.items()}
        clean_replay["recalled"] = [self._recalled(entry) for entry in clean_replay["recalled"]]
        if clean != kept:
            Turn.objects.filter(pk=turn.pk).update(**clean)
        if clean_replay != kept_replay:
            TurnReplay.objects.filter(pk=turn.pk).update(**clean_replay)
        return (clean, clean_replay) != (kept, kept_replay)

    def _had_in_reach(self, replay: TurnReplay) -> bool:
        """Return whether the turn had any of the objects in reach.

        That is: one was recalled for it, was next to a recalled message, or is on the list that its
        answer shows.
        """
        named = {str(entry.get("id")) for entry in replay.recalled}
        named |= {
            str(entry[name].get("message_id"))
            for entry in replay.recalled
            for name in BESIDE
            if name in entry
        }
        return not self._ids.isdisjoint(named | set(replay.shown))

    def _cleaned(self, value: Any, had_it: bool) -> Any:
        clean = self.texts.cleaned(value)
        return self.words.cleaned(clean) if had_it and self.words else clean

    def _recalled(self, entry: dict[str, Any]) -> dict[str, Any]:
        if entry.get("id") in self._ids:
            entry = {**entry, "content": MARK}
        for name in BESIDE:
            if name in entry and entry[name].get("message_id") in self._ids:
                entry = {**entry, name: {**entry[name], "content": MARK}}
        return entry

    def _cut(self, text: str, *, had_it: bool) -> tuple[str, list[str]]:
        """Cut the texts; if they were in reach, also cut single words. See Fragments.cut."""
        kept, gone = self.texts.cut(text)
        if had_it and self.words:
            kept, words_gone = self.words.cut(kept)
            gone = gone + words_gone
        return kept, gone

    def _rewrite_answer(self, message: Message) -> bool:
        """Redact an answer that repeats the texts; return whether further texts were found."""
        kept, gone = self._cut(message.content, had_it=message.pk in self.reached)
        if not gone:
            return False
        self._recorder.record(ChangeKind.ANSWER, message.pk, message.content, left=kept)
        self._cards_away(message.session)
        for summary in self._chat_memory.retext(message=message, content=kept):
            self.texts.add_quoted(summary)
        self._count_once(Message, message.pk)
        further = False
        for text in gone:
            further |= self.texts.add(text)
        return further

    def _empty_command(self, message: Message) -> None:
        """Redact the argument of a command such as /search or /forget."""
        command = parse_command(message.content, in_group=message.chat.is_group)
        name = command.name if command else message.metadata["command"]
        self._cards_away(message.session)
        left = f"/{name} {MARK}"
        self._recorder.record(ChangeKind.COMMAND, message.pk, message.content, left=left)
        self._chat_memory.retext(message=message, content=left)
        self._raw(InboundDelivery.objects.filter(message=message))
        self._count_once(Message, message.pk)

    def _summaries(self, chat_ids: Collection[UUID]) -> bool:
        """Retract the summaries that repeat the texts; they are made again from the rest.

        Returns whether any was retracted.
        """
        further = False
        records = SummarizationMetadata.objects.filter(session__chat_id__in=list(chat_ids))
        summaries = records.select_related("summary_message").order_by("session", "number")
        for record in list(summaries):
            texts = (record.digest, record.chapter, record.summary_message.content)
            if not any(self.texts.are_in(text) for text in texts):
                continue
            if not SummarizationMetadata.objects.filter(pk=record.pk).exists():
                continue  # It was retracted with an earlier one.
            session = ChatSession.objects.select_for_update(no_key=True).get(pk=record.session_id)
            self._retract(session, record.last_order)
            self._chat_memory.manage_after_commit(session)
            further = True
        return further

    def _retract(self, session: ChatSession, order_num: int) -> None:
        before = session.summarizations.count()
        for text in summaries_retract(session=session, order_num=order_num):
            self._recorder.record(ChangeKind.SUMMARY, text, text)
            self.texts.add_quoted(text)
        self.count(SummarizationMetadata, before - session.summarizations.count())

    def _cards_away(self, session: ChatSession) -> None:
        """Delete the card of a session whose messages change, and remove it from replays.

        It is made again from the remaining messages.
        """
        locked = ChatSession.objects.select_for_update(no_key=True).get(pk=session.pk)
        self._carded.add(str(locked.pk))
        for card in MemoryCard.objects.filter(pk=locked.pk).only("title"):
            self._recorder.record(ChangeKind.CARD, card.pk, card.title)
        self.count(MemoryCard, cards_outdate(session_ids=[locked.pk]))
        cards_retract(chat_id=locked.chat_id, session_ids=[locked.pk])

    def _extractions(self, chat_ids: Collection[UUID]) -> None:
        """Redact errors of extraction, because a model's server may quote its input in them."""
        failed = ExtractionWork.objects.filter(turn__chat_id__in=list(chat_ids)).exclude(error="")
        for work in failed.only("error"):
            if self.texts.are_in(work.error):
                ExtractionWork.objects.filter(pk=work.pk).update(error=MARK)
                self._count_once(ExtractionWork, work.pk)

    def _parts(self, chat_ids: Collection[UUID]) -> None:
        """Redact answers that wait to be sent, and those that may have been sent."""
        parts = OutboundPart.objects.filter(turn__chat_id__in=list(chat_ids)).exclude(content="")
        for part in parts.select_related("turn").iterator(ROWS_AT_ONCE):
            kept, gone = self._cut(part.content, had_it=part.turn.reply_id in self.reached)
            if gone:
                self._recorder.record(ChangeKind.PART, part.pk, part.content, left=kept)
                OutboundPart.objects.filter(pk=part.pk).update(content=kept)
                self._count_once(OutboundPart, part.pk)

    def _notes(self, chat_ids: Collection[UUID] | None = None) -> None:
        """Redact the notes of staff: in these chats also paraphrases, everywhere quotations."""
        notes = Note.objects.only("chat", "text")
        if chat_ids is not None:
            notes = notes.filter(chat__in=list(chat_ids))
        for note in notes.iterator(ROWS_AT_ONCE):
            if chat_ids is None and not self.texts.are_in(note.text):
                continue
            kept, gone = self.texts.cut(note.text)
            if gone:
                # Its author may be editing it, and another forgetting redacting it.
                self._held.require(Scopes(frozenset({chat_scope(note.chat_id)})))
                self._recorder.record(ChangeKind.NOTE, note.pk, note.text, left=kept)
                Note.objects.filter(pk=note.pk).update(text=kept)
                self._count_once(Note, note.pk)

    def _deliveries(self, deliveries: QuerySet[InboundDelivery], since: datetime) -> None:
        """Empty the deliveries that hold the texts: a later message may quote an earlier one."""
        delivered = deliveries.filter(received_at__gte=since).filter(
            Q(raw__isnull=False) | Q(change__isnull=False)
        )
        holding = [
            delivery.pk
            for delivery in delivered.only("raw", "change").iterator(ROWS_AT_ONCE)
            if self.texts.cleaned([delivery.raw, delivery.change])
            != [delivery.raw, delivery.change]
        ]
        self._raw(InboundDelivery.objects.filter(pk__in=holding))

    def _raw(self, deliveries: QuerySet[InboundDelivery]) -> None:
        full = deliveries.filter(Q(raw__isnull=False) | Q(change__isnull=False))
        emptied = full.update(raw=None, change=None)
        self._recorder.add_count(ChangeKind.DELIVERY, emptied)
        self.count(InboundDelivery, emptied)

    def _count_once(self, model: type[Model], key: Any) -> None:
        seen = (model._meta.db_table, key)
        if seen not in self._emptied:
            self._emptied.add(seen)
            self.count(model, 1)


def _in_batches(messages: QuerySet[Message]) -> Iterable[Message]:
    return (
        messages.select_related("chat", "session")
        .defer("terms")
        .order_by("pk")
        .iterator(ROWS_AT_ONCE)
    )
