"""Takes texts out of what was made of them: answers, replays, summaries, raw deliveries,
answers that wait to be sent, results of queued work, the admin's own log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db.models import Model, Q, QuerySet, Sum
from django_q.models import OrmQ, Task

from cards_app.models import MemoryCard
from memoryproject.api.models import IdempotentAnswer
from memoryproject.lib.fragments import MARK, Fragments
from sessions_app.commands import parse_command
from sessions_app.models import (
    ChatSession,
    ExtractionWork,
    InboundDelivery,
    Message,
    OutboundPart,
    SummarizationMetadata,
    Turn,
)
from sessions_app.models.messages import Role
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.services.cards.recall import cards_take_back
from sessions_app.services.cards.work import cards_outdate
from sessions_app.services.chat_memory import ChatMemoryService
from sessions_app.services.summaries.store import summaries_take_back

ROWS_AT_ONCE = 200
# Each round may turn up another text that retells it; a chain of this many was never seen.
MOST_ROUNDS = 10

# How cards are told from other answers, as JSON and as YAML.
OF_CARDS = ('"algorithm_version"', "# Algorithm: ")


class Sweep:
    """A forgetting in progress, within its transaction.

    ``texts`` is what is looked for; ``ids`` are the objects that are being forgotten.
    ``keep_turn`` is the turn that asks for it and goes on. ``swept`` counts rows by table.
    """

    def __init__(
        self,
        *,
        chat_memory: ChatMemoryService,
        ids: Collection[UUID],
        keep_turn: int | None = None,
        now: datetime,
    ) -> None:
        self.texts = Fragments()
        self.swept: Counter[str] = Counter()
        self._chat_memory = chat_memory
        self._ids = {str(key) for key in ids}
        self._keep_turn = keep_turn
        self._now = now
        self._emptied: set[tuple[str, Any]] = set()
        self._carded: set[str] = set()

    def count(self, model: type[Model], rows: int) -> None:
        """Note that so many rows of a table were deleted or emptied."""
        if rows:
            self.swept[model._meta.db_table] += rows

    def out_of_chats(self, chat_ids: Collection[UUID], *, since: datetime) -> None:
        """Take the texts out of everything that these chats made of them since then."""
        for _ in range(MOST_ROUNDS):
            if not self._once(chat_ids, since):
                return

    def out_of_the_rest(self) -> None:
        """Take the texts out of what belongs to no chat."""
        self._tasks()
        self._admin_log()
        self._logins()
        self._api_answers()

    def out_of_who_asked(self) -> None:
        """The command that asks for it says in its own words what it is about."""
        asked = Message.objects.filter(turn__pk=self._keep_turn, metadata__has_key="command")
        for message in asked.select_related("chat", "session") if self._keep_turn else ():
            self._empty_command(message)

    def messages_delete(self, messages: QuerySet[Message]) -> None:
        """Delete messages with their vectors and what was delivered of them; the summaries that
        cover them are taken back. Turns that wait for an answer to them are cancelled."""
        found = list(messages.order_by("session_id", "order_num").defer("terms"))
        ids = [message.pk for message in found]
        if not ids:
            return
        waiting = Turn.objects.filter(message__in=ids, state__in=WAITING_STATES)
        waiting.exclude(pk=self._keep_turn).update(
            state=TurnState.CANCELLED, finished_at=self._now, lease_token=None
        )
        self._raw(InboundDelivery.objects.filter(message__in=ids))
        for message in found:
            if message.provider_message_id:
                self._raw(
                    InboundDelivery.objects.filter(
                        provider=message.provider, subject_id=message.provider_message_id
                    )
                )
        first: dict[UUID, int] = {}
        for message in found:
            first.setdefault(message.session_id, message.order_num)
        for session_id, order_num in first.items():
            session = ChatSession.objects.select_for_update(no_key=True).get(pk=session_id)
            self._take_back(session, order_num)
            self._cards_away(session)
            here = Message.objects.filter(pk__in=ids, session=session)
            in_window = here.filter(order_num__gte=session.window_start)
            session.total_tokens -= in_window.aggregate(all=Sum("tokens"))["all"] or 0
            session.save(update_fields=["total_tokens"])
            here.delete()
            self._chat_memory.manage_after_commit(session)
        self.count(Message, len(ids))

    def _once(self, chat_ids: Collection[UUID], since: datetime) -> bool:
        """One look at everything; whether it turned up further texts to look for."""
        further = False
        retold = self._replays(chat_ids, since)
        said = Message.objects.filter(chat_id__in=list(chat_ids), received_at__gte=since)
        for message in _in_batches(said.filter(role=Role.ASSISTANT)):
            is_retelling = message.pk in retold or "system_text" in message.metadata
            if is_retelling or self.texts.are_in(message.content):
                further |= self._retell(message)
        for message in _in_batches(said.filter(metadata__has_key="command")):
            if self.texts.are_in(message.content):
                self._empty_command(message)
        further |= self._summaries(chat_ids)
        self._extractions(chat_ids)
        self._parts(chat_ids)
        self._deliveries(chat_ids, since)
        return further

    def _replays(self, chat_ids: Collection[UUID], since: datetime) -> set[UUID]:
        """Clean the replays of turns; the answers to those that had any of it in reach."""
        turns = Turn.objects.filter(chat_id__in=list(chat_ids)).filter(
            Q(created_at__gte=since) | Q(state__in=WAITING_STATES)
        )
        answers = set()
        fields = ("prompt", "recalled", "left_out", "context", "error")
        texts = ("unstored_text", "unstored_reply")
        for turn in turns.only("id", "reply", *fields, *texts).iterator(ROWS_AT_ONCE):
            kept = {name: getattr(turn, name) for name in (*fields, *texts)}
            clean = {name: self.texts.cleaned(value) for name, value in kept.items()}
            clean["recalled"] = [self._recalled(entry) for entry in clean["recalled"]]
            if clean != kept:
                Turn.objects.filter(pk=turn.pk).update(**clean)
                self._count_once(Turn, turn.pk)
                if turn.reply_id is not None:
                    answers.add(turn.reply_id)
        return answers

    def _recalled(self, entry: dict[str, Any]) -> dict[str, Any]:
        if entry.get("id") not in self._ids:
            return entry
        return {**entry, "content": MARK}

    def _retell(self, message: Message) -> bool:
        """Take out of an answer what retells the texts; whether that is new."""
        kept, gone = self.texts.cut(message.content)
        if not gone:
            return False
        self._cards_away(message.session)
        for summary in self._chat_memory.retext(message=message, content=kept):
            self.texts.add_quoted(summary)
        self._count_once(Message, message.pk)
        further = False
        for text in gone:
            further |= self.texts.add(text)
        return further

    def _empty_command(self, message: Message) -> None:
        """A command names what it is about: /search, /forget."""
        command = parse_command(message.content, in_group=message.chat.is_group)
        name = command.name if command else message.metadata["command"]
        self._cards_away(message.session)
        self._chat_memory.retext(message=message, content=f"/{name} {MARK}")
        self._raw(InboundDelivery.objects.filter(message=message))
        self._count_once(Message, message.pk)

    def _summaries(self, chat_ids: Collection[UUID]) -> bool:
        """Take back the summaries that tell of it; they are made again of what is left."""
        further = False
        records = SummarizationMetadata.objects.filter(session__chat_id__in=list(chat_ids))
        told = records.select_related("summary_message").order_by("session", "number")
        for record in list(told):
            texts = (record.digest, record.chapter, record.summary_message.content)
            if not any(self.texts.are_in(text) for text in texts):
                continue
            if not SummarizationMetadata.objects.filter(pk=record.pk).exists():
                continue  # an earlier one took it along
            session = ChatSession.objects.select_for_update(no_key=True).get(pk=record.session_id)
            self._take_back(session, record.last_order)
            self._chat_memory.manage_after_commit(session)
            further = True
        return further

    def _take_back(self, session: ChatSession, order_num: int) -> None:
        before = session.summarizations.count()
        for text in summaries_take_back(session=session, order_num=order_num):
            self.texts.add_quoted(text)
        self.count(SummarizationMetadata, before - session.summarizations.count())

    def _cards_away(self, session: ChatSession) -> None:
        """The card of a session whose messages change goes, and is made again of what is left;
        where it stood in a prompt it is taken out."""
        locked = ChatSession.objects.select_for_update(no_key=True).get(pk=session.pk)
        self._carded.add(str(locked.pk))
        self.count(MemoryCard, cards_outdate(session_ids=[locked.pk]))
        cards_take_back(chat_id=locked.chat_id, session_ids=[locked.pk])

    def _extractions(self, chat_ids: Collection[UUID]) -> None:
        """What a model's server said when it refused may quote what it was sent."""
        failed = ExtractionWork.objects.filter(turn__chat_id__in=list(chat_ids)).exclude(error="")
        for work in failed.only("error"):
            if self.texts.are_in(work.error):
                ExtractionWork.objects.filter(pk=work.pk).update(error=MARK)
                self._count_once(ExtractionWork, work.pk)

    def _parts(self, chat_ids: Collection[UUID]) -> None:
        """Answers that wait to be sent, and those that may have gone out."""
        parts = OutboundPart.objects.filter(turn__chat_id__in=list(chat_ids)).exclude(content="")
        for part in parts.iterator(ROWS_AT_ONCE):
            kept, gone = self.texts.cut(part.content)
            if gone:
                OutboundPart.objects.filter(pk=part.pk).update(content=kept)
                self._count_once(OutboundPart, part.pk)

    def _deliveries(self, chat_ids: Collection[UUID], since: datetime) -> None:
        """A later message may quote an earlier one."""
        delivered = InboundDelivery.objects.filter(
            Q(chat_id__in=list(chat_ids)) | Q(chat__isnull=True), received_at__gte=since
        ).filter(Q(raw__isnull=False) | Q(change__isnull=False))
        holding = [
            delivery.pk
            for delivery in delivered.only("raw", "change").iterator(ROWS_AT_ONCE)
            if self.texts.cleaned([delivery.raw, delivery.change])
            != [delivery.raw, delivery.change]
        ]
        self._raw(InboundDelivery.objects.filter(pk__in=holding))

    def _raw(self, deliveries: QuerySet[InboundDelivery]) -> None:
        full = deliveries.filter(Q(raw__isnull=False) | Q(change__isnull=False))
        self.count(InboundDelivery, full.update(raw=None, change=None))

    def _tasks(self) -> None:
        """Results and errors of finished work, and what waits in the queue."""
        for task in Task.objects.only("id", "args", "kwargs", "result").iterator(ROWS_AT_ONCE):
            if self._tells([task.args, task.kwargs, task.result]):
                Task.objects.filter(pk=task.pk).delete()
                self.count(Task, 1)
        for queued in OrmQ.objects.iterator(ROWS_AT_ONCE):
            if self._tells(queued.task):
                queued.delete()
                self.count(OrmQ, 1)

    def _tells(self, value: Any) -> bool:
        plain = json.loads(json.dumps(value, default=str, ensure_ascii=False))
        return bool(self.texts.cleaned(plain) != plain)

    def _admin_log(self) -> None:
        for entry in LogEntry.objects.only("object_id", "object_repr", "change_message").iterator():
            about = entry.object_id in self._ids
            if about or self._tells([entry.object_repr, entry.change_message]):
                LogEntry.objects.filter(pk=entry.pk).update(object_repr=MARK, change_message="")
                self.count(LogEntry, 1)

    def _logins(self) -> None:
        """The admin's notices ("… was changed") may wait in a session to be shown."""
        for session in Session.objects.iterator():
            data = session.get_decoded()
            if "_messages" in data and self._tells(data["_messages"]):
                del data["_messages"]
                session.session_data = SessionStore().encode(data)
                session.save(update_fields=["session_data"])
                self.count(Session, 1)

    def _api_answers(self) -> None:
        """Answers that are kept for calls that come twice. Of a call in progress nobody knows
        yet what it will answer."""
        rows = IdempotentAnswer.objects.filter(withheld=False)
        rows.filter(status__isnull=True).update(withheld=True)
        for row in rows.exclude(body="").only("body").iterator(ROWS_AT_ONCE):
            if self._tells(_told(row.body)) or self._is_card(row.body):
                IdempotentAnswer.objects.filter(pk=row.pk).update(body="", withheld=True)
                self.count(IdempotentAnswer, 1)

    def _is_card(self, body: str) -> bool:
        """Whether it is the card of a session whose messages change: single words of them may
        stand in it, which tell nothing by themselves."""
        if not any(mark in body for mark in OF_CARDS):
            return False
        return any(session_id in body for session_id in self._carded)

    def _count_once(self, model: type[Model], key: Any) -> None:
        seen = (model._meta.db_table, key)
        if seen not in self._emptied:
            self._emptied.add(seen)
            self.count(model, 1)


def _told(body: str) -> Any:
    """An answer's document; the body itself where it is none."""
    try:
        return json.loads(body)
    except ValueError:
        return body


def _in_batches(messages: QuerySet[Message]) -> Iterable[Message]:
    return (
        messages.select_related("chat", "session")
        .defer("terms")
        .order_by("pk")
        .iterator(ROWS_AT_ONCE)
    )
