"""Any sequence of what can happen to a conversation keeps its invariants."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings, strategies as st
from hypothesis.extra.django import TestCase

from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.session_lifecycle import session_end, session_open, session_start
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.history.clear_session import sessions_archive, sessions_expire
from sessions_app.history.strategies import SummarizationStrategy
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.legacy_import.import_folder import FolderImport
from sessions_app.legacy_import.session_folder import LegacyFolder
from sessions_app.management.commands.session_rebuild import session_rebuild
from sessions_app.models import Chat, ChatSession, Message
from sessions_app.models.chats import Limits
from sessions_app.summaries.summarizer import Summarizer
from tests.fuzz.damage import FACTOR
from tests.recovery.old_files import OldFolder, message
from tests.sessions.invariants import check_all, check_no_gaps
from tests.world import CLIENT

START = datetime(2026, 1, 10, tzinfo=timezone.utc)
DAY = timedelta(hours=24)

LENGTHS = st.integers(0, 160)
STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(LENGTHS, min_size=1, max_size=7)),
    st.tuples(st.just("summarize"), st.none()),
    st.tuples(st.just("retext"), st.tuples(st.integers(0, 60), LENGTHS)),
    st.tuples(st.just("reset"), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([0, 1, 23, 24, 25])),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("expire"), st.none()),
    st.tuples(st.just("archive"), st.none()),
    st.tuples(st.just("rebuild"), st.none()),
    st.tuples(st.just("bring_in"), st.lists(st.integers(1, 9), min_size=1, max_size=4)),
)


class Conversation:
    """One chat to which things happen."""

    def __init__(self, limit: int, every: int, delete: bool) -> None:
        self.now = START
        self.limit = limit
        self.deletes = delete
        self.lossless = not delete
        summarizer = Summarizer(chat_model=ScriptedChatModel(lambda _: "in short " * 20))
        self.service = ChatMemoryService(
            limits=Limits(client=limit),
            strategy=SummarizationStrategy(
                summarizer=summarizer,
                summarize_every_n_messages=every,
                delete_summarized_messages=delete,
            ),
        )
        self.chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
        self.chat.addresses.create(provider="cloud", address=CLIENT)

    def step(self, name: str, value: Any) -> None:
        self.now += timedelta(minutes=1)
        getattr(self, f"_{name}")(value)

    def _session(self) -> ChatSession:
        return session_open(chat=self.chat, now=self.now, timeout=DAY)

    def _add(self, lengths: list[int]) -> None:
        messages = [
            NewMessage("user" if place % 2 else "assistant", ("7 " * length)[:length], self.now)
            for place, length in enumerate(lengths)
        ]
        self.service.add_messages(
            conversation_id=self._session().pk, messages=messages, now=self.now
        )

    def _summarize(self, _: None) -> None:
        for session in self.chat.sessions.all():
            self.service.strategy.post_add_messages_hook(session=session)
            self.service.manage(conversation_id=session.pk)

    def _retext(self, what: tuple[int, int]) -> None:
        place, length = what
        said = Message.objects.exclude(role="summary").order_by("-received_at", "-order_num")
        found = said[place : place + 1].first()
        if found is not None:
            self.lossless = False
            self.service.retext(message=found, content=("8 " * length)[:length])

    def _reset(self, _: None) -> None:
        session = self._session()
        session_end(session=session, at=self.now)
        session_start(chat=self.chat, now=self.now)

    def _expire(self, _: None) -> None:
        sessions_expire(now=self.now, timeout=DAY)

    def _archive(self, _: None) -> None:
        sessions_archive(now=self.now, older_than=timedelta(0))

    def _rebuild(self, _: None) -> None:
        for session in self.chat.sessions.all():
            # An emptied session begins to count afresh.
            self.lossless = self.lossless and session.messages.exists()
            session_rebuild(session_id=session.pk, rules=self._rules())

    def _bring_in(self, numbers: list[int]) -> None:
        """Import an old session of this chat whose last message is ``numbers[0]`` hours old."""
        # Numbers of an old session may have gaps.
        self.lossless = False
        with TemporaryDirectory() as folder:
            old = OldFolder(Path(folder) / "sessions")
            at = (self.now - timedelta(hours=numbers[0])).isoformat()
            files = [message(n, "z" * 9 * n, timestamp=at, received_at=at) for n in set(numbers)]
            old.add(files, last_active=at, created_at=at)
            report = FolderImport(
                folder=LegacyFolder(old.root), rules=self._rules(), now=self.now, embedder=None
            ).run()
            assert (report.sessions["imported"], report.skipped) == (1, [])

    def _rules(self) -> IntakeRules:
        return IntakeRules(memory_enabled=True, chat_memory=self.service, session_timeout=DAY)

    def _wait(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    def _clear(self, _: None) -> None:
        self.lossless = False
        self.service.clear_messages(conversation_id=self._session().pk)


class AnySequence(TestCase):
    @settings(max_examples=25 * FACTOR, deadline=None)
    @given(
        limit=st.integers(1, 120),
        every=st.integers(1, 6),
        delete=st.booleans(),
        steps=st.lists(STEPS, max_size=25),
    )
    @example(limit=1, every=1, delete=False, steps=[("add", [0]), ("summarize", None)])
    def test_any_sequence_of_steps_keeps_the_invariants(
        self, limit: int, every: int, delete: bool, steps: list[tuple[str, Any]]
    ) -> None:
        conversation = Conversation(limit, every, delete)
        for name, value in steps:
            conversation.step(name, value)
            check_all(limits={CLIENT: limit})
        if conversation.lossless:
            for session in conversation.chat.sessions.all():
                check_no_gaps(session)

    @settings(max_examples=12 * FACTOR, deadline=None)
    @given(every=st.integers(1, 6), count=st.integers(0, 40), delete=st.booleans())
    def test_all_full_runs_are_summed_up(self, every: int, count: int, delete: bool) -> None:
        conversation = Conversation(1_000, every, delete)
        conversation.step("add", [4] * count)
        conversation.step("summarize", None)
        session = ChatSession.objects.get()
        assert session.summarizations.count() == count // every
        assert session.summarized_until == count // every * every
        check_all(limits={CLIENT: 1_000})
