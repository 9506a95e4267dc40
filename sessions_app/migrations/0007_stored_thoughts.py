"""Remove models' thoughts from what is stored of their answers.

Each chat with such a text is cleaned in a transaction of its own, so that the migration can be
interrupted and begun again: what is clean has no mark any more. What people wrote stays.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import migrations, transaction
from django.db.models import Q
from django.utils import timezone

from memoryproject.foundation.integrations.llm.thoughts import without_thoughts
from memoryproject.foundation.retrieval.subqueries import may_repeat_a_query
from memoryproject.foundation.text.characters import estimate_tokens
from memoryproject.foundation.text.terms import index_text

# Where without_thoughts may find something; it decides.
MARKS = (
    r"<[ /|｜]*[\w:-]{0,20}(think|thought|reason|reflect|analysis|scratch|monologue)"
    r"|\[/?(think|thought|inst)|◁|<\||<｜|_of_turn>|<(bos|eos|pad|unk)>|</?s>|<channel\||<turn\|"
    r"|assistantfinal"
)
OURS = ("assistant", "summary")
MARKED = {"content__iregex": MARKS}


def clean(apps: Any, schema_editor: Any) -> None:
    for chat_id in _chats(apps):
        with transaction.atomic():
            _Cleaning(apps, chat_id).run()


def _chats(apps: Any) -> list[UUID]:
    model = apps.get_model
    found: set[UUID] = set()
    for name, condition, chat in (
        ("Message", Q(role__in=OURS, **MARKED), "chat_id"),
        ("SummarizationMetadata", _either("digest", "chapter"), "session__chat_id"),
        ("Turn", _either("unstored_reply"), "chat_id"),
        ("OutboundPart", _either("content"), "turn__chat_id"),
        ("AnswerTrial", _either("text"), "turn__chat_id"),
    ):
        rows = model("sessions_app", name).objects.order_by().filter(condition)
        found.update(rows.values_list(chat, flat=True).distinct())
    return sorted(found)


def _either(*names: str) -> Q:
    wanted = Q()
    for name in names:
        wanted |= Q(**{f"{name}__iregex": MARKS})
    return wanted


class _Cleaning:
    """Clean one chat. ``texts``: what was stored, with what is left of it."""

    def __init__(self, apps: Any, chat_id: UUID) -> None:
        self.model = lambda name: apps.get_model("sessions_app", name)
        self.cards = apps.get_model("cards_app", "MemoryCard")
        self.chat_id = chat_id
        self.texts: dict[str, str] = {}

    def run(self) -> None:
        # Sessions are locked first, as everywhere.
        sessions = self.model("ChatSession").objects.filter(chat_id=self.chat_id).order_by("pk")
        for session in sessions.select_for_update(no_key=True):
            self._session(session)
        for name, fields, of_chat in (
            ("Turn", ("unstored_reply",), {"chat_id": self.chat_id}),
            ("OutboundPart", ("content",), {"turn__chat_id": self.chat_id}),
            ("AnswerTrial", ("text",), {"turn__chat_id": self.chat_id}),
        ):
            rows = self.model(name).objects.filter(_either(*fields), **of_chat)
            for row in rows.only("pk", *fields).iterator(chunk_size=200):
                self._texts(row, fields)
        if self.texts:
            self._replays()

    def _session(self, session: Any) -> None:
        messages = self.model("Message").objects.filter(session=session, role__in=OURS, **MARKED)
        changed = [each for each in messages.iterator(chunk_size=200) if self._message(each)]
        records = self.model("SummarizationMetadata").objects.filter(session=session)
        for record in records.filter(_either("digest", "chapter")):
            self._texts(record, ("digest", "chapter"))
        if not changed:
            return
        for message in changed:
            if message.order_num >= session.window_start:
                session.total_tokens = max(session.total_tokens + message.grown, 0)
        # The sweeps make vectors and cards anew.
        session.vectors_requested_at = timezone.now()
        session.save(update_fields=["total_tokens", "vectors_requested_at"])
        if self.cards.objects.filter(pk=session.pk).delete()[0]:
            due = {"due_at": timezone.now(), "attempts": 0}
            self.model("CardWork").objects.update_or_create(session=session, defaults=due)

    def _message(self, message: Any) -> bool:
        text = self._left(message.content)
        if text == message.content:
            return False
        message.grown = estimate_tokens(text) - estimate_tokens(message.content)
        indexed = index_text(text)
        asks = ["!asks"] if may_repeat_a_query(text) else []
        message.content = text
        message.tokens = max(message.tokens + message.grown, 0)
        message.terms, message.term_count = [*indexed.terms, *asks], indexed.length
        message.save(update_fields=["content", "tokens", "terms", "term_count"])
        self.model("MessageEmbedding").objects.filter(message=message).delete()
        return True

    def _texts(self, row: Any, fields: tuple[str, ...]) -> None:
        changed = [name for name in fields if self._left(getattr(row, name)) != getattr(row, name)]
        for name in changed:
            setattr(row, name, self._left(getattr(row, name)))
        if changed:
            row.save(update_fields=changed)

    def _left(self, text: str) -> str:
        left = without_thoughts(text)
        if left != text:
            self.texts[text] = left
        return left

    def _replays(self) -> None:
        """Clean the records of answers whose prompts held one of the texts."""
        replays = self.model("TurnReplay").objects.filter(turn__chat_id=self.chat_id)
        for replay in replays.iterator(chunk_size=100):
            names = ("prompt", "recalled", "left_out")
            changed = {name: self._replaced(getattr(replay, name)) for name in names}
            changed = {n: value for n, value in changed.items() if value != getattr(replay, n)}
            if changed:
                self.model("TurnReplay").objects.filter(pk=replay.pk).update(**changed)

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("role") == "user":
                return value
            return {name: self._replaced(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._replaced(each) for each in value]
        if isinstance(value, str):
            for text, left in self.texts.items():
                value = value.replace(text, left)
        return value


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("sessions_app", "0006_answer_outcomes"),
        ("cards_app", "0001_initial"),
    ]

    operations = [migrations.RunPython(clean, migrations.RunPython.noop)]
