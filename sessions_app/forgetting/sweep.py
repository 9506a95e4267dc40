"""The sweep of one forgetting: what is erased, and the edits that its steps share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from cards_app.models import MemoryCard
from memoryproject.foundation.retrieval.fragments import Fragments
from sessions_app.cards.facade import cards_retract
from sessions_app.conversations.facade import (
    REDACT,
    ChangeKind,
    Held,
    PreviewRecorder,
    cards_outdate,
)
from sessions_app.forgetting.deletion_plan import DeletionPlan
from sessions_app.history.facade import ChatMemoryService
from sessions_app.models import ChatSession, InboundDelivery, Message, SummarizationMetadata
from sessions_app.summaries.facade import summaries_retract

ROWS_AT_ONCE = 200


class Sweep:
    """The state of one forgetting, within its transaction.

    ``texts`` are searched in what belongs to no chat. ``ids`` are the objects that go.
    ``keep_turn`` is the turn that asks for the forgetting and isn't cancelled.

    ``swept`` counts rows by table; ``recorder`` records the changes for the preview.
    ``emptied_chats`` are the chats in which messages were deleted, ``deleted_messages`` the
    providers' ids of these messages. ``rewritten`` are the ids of answers and turns that stay with
    less text. ``card_sessions`` are the sessions whose cards were deleted,
    ``summaries`` the texts of the retracted summaries of each session.
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
        self.plan = plan
        self.texts = Fragments(plan.texts)
        self.ids = {*plan.ids(), str(object_id)}
        self.chat_memory = chat_memory
        self.recorder = recorder
        self.held = held
        self.keep_turn = keep_turn
        self.now = now
        self.swept: Counter[str] = Counter()
        self.emptied_chats: set[UUID] = set()
        self.deleted_messages: set[tuple[str, str]] = set()
        self.rewritten: set[str] = set()
        self.card_sessions: set[str] = set()
        self.summaries: defaultdict[UUID, set[str]] = defaultdict(set)
        self._counted: set[tuple[str, Any]] = set()

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

    def empty_deliveries(self, deliveries: QuerySet[InboundDelivery]) -> None:
        """Empty the providers' raw bodies; what a worker has still to redact stays until it has."""
        ordered = Q(change__has_key=REDACT)
        full = deliveries.filter(Q(raw__isnull=False) | Q(change__isnull=False) & ~ordered)
        keys = list(full.values_list("pk", flat=True))
        emptied = InboundDelivery.objects.filter(pk__in=keys).update(raw=None)
        InboundDelivery.objects.filter(pk__in=keys).exclude(ordered).update(change=None)
        self.recorder.add_count(ChangeKind.DELIVERY, emptied)
        self.count(InboundDelivery, emptied)

    def remove_quote(self, message: Message) -> None:
        """Remove the quotation from a message that stays."""
        quoted = message.metadata["quoted"]
        text = quoted.get("text", "") if isinstance(quoted, dict) else str(quoted)
        self.recorder.record(ChangeKind.QUOTE, message.pk, text)
        metadata = {key: value for key, value in message.metadata.items() if key != "quoted"}
        Message.objects.filter(pk=message.pk).update(metadata=metadata)
        self.empty_deliveries(InboundDelivery.objects.filter(message=message))
        self.count_once(Message, message.pk)

    def retract_summaries(self, session: ChatSession, order_num: int) -> bool:
        """Retract the summaries that cover a message; return whether there were any."""
        before = session.summarizations.count()
        for text in summaries_retract(session=session, order_num=order_num):
            self.recorder.record(ChangeKind.SUMMARY, text, text)
            self.summaries[session.pk].add(text)
        gone = before - session.summarizations.count()
        self.count(SummarizationMetadata, gone)
        return gone > 0

    def retext(self, message: Message, kind: ChangeKind, content: str) -> None:
        """Replace the text of a message that stays, and retract what was made of the old one."""
        self.recorder.record(kind, message.pk, message.content, left=content)
        self.delete_card(message.session)
        session = ChatSession.objects.select_for_update(no_key=True).get(pk=message.session_id)
        if self.retract_summaries(session, message.order_num):
            # They are made again from the rest.
            self.chat_memory.manage_after_commit(session)
        self.chat_memory.retext(message=message, content=content)
        self.rewritten.add(str(message.pk))
        self.count_once(Message, message.pk)

    def retold(self, chat_id: UUID, texts: Iterable[str]) -> None:
        """Search also for what an answer made of the texts: it may be quoted in its chat."""
        for text in texts:
            self.plan.texts_by_chat[chat_id].add(text)
            self.texts.add(text)

    def delete_card(self, session: ChatSession) -> None:
        """Delete the card of a session whose messages change, and remove it from replays.

        It is made again from the remaining messages.
        """
        locked = ChatSession.objects.select_for_update(no_key=True).get(pk=session.pk)
        self.card_sessions.add(str(locked.pk))
        for card in MemoryCard.objects.filter(pk=locked.pk).only("title"):
            self.recorder.record(ChangeKind.CARD, card.pk, card.title)
        self.count(MemoryCard, cards_outdate(session_ids=[locked.pk]))
        cards_retract(chat_id=locked.chat_id, session_ids=[locked.pk])
