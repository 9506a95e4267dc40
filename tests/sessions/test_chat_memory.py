"""ChatMemoryService: getMessages, addMessages, clearMessages, and their errors (seed 003)."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sessions_app.conversations.message_store import (
    ChatMemoryError,
    ConversationNotFoundError,
    DataValidationError,
    GenericMemoryError,
    NewMessage,
)
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.history.strategies import MemoryManagementStrategy
from sessions_app.models import Chat, ChatSession, Message, SummarizationMetadata, Turn
from sessions_app.models.chats import Limits
from tests.database import refuse_rows
from tests.world import CLIENT, GODFATHER, World, message_from

NOON = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)


def said(content: Any, role: Any = "user", **changes: Any) -> NewMessage:
    return NewMessage(role=role, content=content, timestamp=NOON, **changes)


@pytest.fixture
def service() -> ChatMemoryService:
    return ChatMemoryService(godfather=frozenset({GODFATHER}))


@pytest.fixture
def session(db: None) -> ChatSession:
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud")
    return ChatSession.objects.create(chat=chat, created_at=NOON, last_active=NOON)


def test_order_is_by_number_not_by_time(service: ChatMemoryService, session: ChatSession) -> None:
    times = [NOON, NOON - timedelta(days=3), NOON + timedelta(days=1)]
    messages = [NewMessage("user", f"m{n}", at) for n, at in enumerate(times)]
    service.add_messages(conversation_id=session.pk, messages=messages)
    found = service.get_messages(conversation_id=session.pk)
    assert [each.content for each in found] == ["m0", "m1", "m2"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (said("x", "human"), "messages[1].role: unknown role 'human'"),
        (said("a\x00b"), "messages[1].content: holds a NUL"),
        (said("a\ud800b"), "messages[1].content: holds half of a character"),
        (said(12), "messages[1].content: must be a text, not int"),
        (said("x", metadata={"at": NOON}), "messages[1].metadata: can't be written as JSON"),
        (said("x", metadata={"n": float("nan")}), "messages[1].metadata: can't be written"),
        (said("x", metadata={"n": "\x00"}), "messages[1].metadata: holds a NUL"),
        (said("x", metadata={"n": "\\\x00"}), "messages[1].metadata: holds a NUL"),
        (said("x", metadata=[1]), "messages[1].metadata: must be an object"),
        (said("x", sender="s" * 256), "messages[1].sender: has 256 characters"),
        (NewMessage("user", "x", "yesterday"), "messages[1].timestamp: must be a date"),  # type: ignore[arg-type]
    ],
)
def test_err_session_003_and_004_one_wrong_message_and_none_is_stored(
    service: ChatMemoryService, session: ChatSession, wrong: NewMessage, says: str
) -> None:
    """ERR-SESSION-003 (not serialisable) and ERR-SESSION-004 (unknown role)."""
    with pytest.raises(DataValidationError) as caught:
        service.add_messages(conversation_id=session.pk, messages=[said("fine"), wrong])
    assert says in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ChatMemoryError)
    assert not Message.objects.exists()
    session.refresh_from_db()
    assert (session.message_counter, session.total_tokens) == (0, 0)


def test_a_text_about_nul_is_none(service: ChatMemoryService, session: ChatSession) -> None:
    metadata = {"json in a text": '"\\u0000"', "path": r"C:\\u0000"}
    messages = [said("x", metadata=metadata)]
    (stored,) = service.add_messages(conversation_id=session.pk, messages=messages)
    stored.refresh_from_db()
    assert stored.metadata == metadata


def test_err_session_003_what_fails_is_logged_without_its_content(
    service: ChatMemoryService, session: ChatSession, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = said("a secret", metadata={"made": {1, 2}})
    with pytest.raises(DataValidationError):
        service.add_messages(conversation_id=session.pk, messages=[wrong])
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert "messages[0].metadata" in record.getMessage()
    assert "secret" not in caplog.text


def test_err_session_005_empty_content_is_stored_with_a_warning(
    service: ChatMemoryService, session: ChatSession, caplog: pytest.LogCaptureFixture
) -> None:
    """ERR-SESSION-005: content of white space is stored as it is, with no tokens."""
    stored = service.add_messages(
        conversation_id=session.pk, messages=[said(""), said(" \n\t" * 20)]
    )
    assert [each.tokens for each in stored] == [0, 0]
    assert [each.content for each in stored] == ["", " \n\t" * 20]
    assert len([each for each in caplog.records if each.levelno == logging.WARNING]) >= 2
    assert "without text was stored" in caplog.text


def test_edge_008_a_picture_that_is_not_there_is_stored_with_a_warning(
    session: ChatSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "there.jpg").write_bytes(b"")
    service = ChatMemoryService(image_root=tmp_path)
    images = ["gone.jpg", "there.jpg"]
    messages = [said("", image_path=path) for path in images]
    stored = service.add_messages(conversation_id=session.pk, messages=messages)
    assert [each.image_path for each in stored] == images
    warned = [each.getMessage() for each in caplog.records if "no picture" in each.getMessage()]
    assert len(warned) == 1
    assert "gone.jpg" in warned[0]


def test_edge_001_a_session_without_messages_is_an_empty_list(
    service: ChatMemoryService, session: ChatSession
) -> None:
    assert service.get_messages(conversation_id=session.pk) == []
    assert (session.total_tokens, session.message_counter) == (0, 0)
    assert service.add_messages(conversation_id=session.pk, messages=[]) == []
    session.refresh_from_db()
    assert session.last_active == NOON, "nothing was said"


def test_a_session_that_is_not_there(db: None, service: ChatMemoryService) -> None:
    unknown = uuid.uuid4()
    with pytest.raises(ConversationNotFoundError, match=str(unknown)):
        service.get_messages(conversation_id=unknown)
    with pytest.raises(ConversationNotFoundError):
        service.add_messages(conversation_id=unknown, messages=[said("x")])
    with pytest.raises(ConversationNotFoundError):
        service.clear_messages(conversation_id=unknown)


def test_recovery_004_a_refused_write(service: ChatMemoryService, session: ChatSession) -> None:
    """RECOVERY-004: the caller is told, and can repeat."""
    refuse_rows("sessions_app_message", code="XX000")
    with pytest.raises(GenericMemoryError, match="Nothing was changed; try again") as caught:
        service.add_messages(conversation_id=session.pk, messages=[said("x")])
    assert caught.value.__cause__ is not None
    session.refresh_from_db()
    assert (session.message_counter, session.total_tokens) == (0, 0)


def test_clear_takes_all_of_a_session_and_nothing_else(world: World) -> None:
    world.summarizing(4)
    world.say(CLIENT, "My locker code is 4711")
    world.say(CLIENT, "And the alarm is 0815")
    world.sum_up(CLIENT)
    world.say(CLIENT, "What was it?")
    session = world.session(CLIENT)
    world.say(GODFATHER, "Other chats stay")
    assert SummarizationMetadata.objects.count() == 1

    cleared = world.rules.chat_memory.clear_messages(conversation_id=session.pk)

    assert (cleared.messages, cleared.summaries) == (7, 1)
    assert world.rules.chat_memory.get_messages(conversation_id=session.pk) == []
    assert not SummarizationMetadata.objects.exists()
    session.refresh_from_db()
    assert (session.status, session.total_tokens, session.message_counter) == ("active", 0, 7)
    assert "4711" not in everything_kept(world)
    assert len(world.messages(GODFATHER)) == 2

    world.say(CLIENT, "Hello again")
    assert [each.order_num for each in world.messages(CLIENT)] == [8, 9]
    assert [each.content for each in world.prompt()[1:]] == ["Hello again"]


def everything_kept(world: World) -> str:
    """All texts of the client's chat, wherever they are."""
    chat = world.chat(CLIENT)
    rows: list[Any] = list(Message.objects.filter(chat=chat).values_list("content", "metadata"))
    turns = Turn.objects.filter(chat=chat)
    rows += turns.values_list(
        "replay__prompt", "replay__recalled", "replay__left_out", "unstored_text"
    )
    rows += turns.values_list("parts__content")
    rows += chat.deliveries.values_list("raw", "change")
    return repr(rows)


def test_clear_empties_the_replays_of_later_sessions_that_recalled_it(world: World) -> None:
    world.say(CLIENT, "My daughter Noa is allergic to peanuts")
    old = world.session(CLIENT)
    world.say(CLIENT, "/reset")
    world.say(CLIENT, "What is Noa allergic to?")
    assert "peanuts" in everything_kept(world)
    world.rules.chat_memory.clear_messages(conversation_id=old.pk)
    # The new session's own messages stay, and the model's answer to them.
    assert "Noa is allergic to peanuts" not in everything_kept(world)
    assert "What is Noa allergic to?" in everything_kept(world)


def test_clear_cancels_what_waits_for_its_answer(world: World) -> None:
    world.receive(message_from(CLIENT, "Anybody there?"))
    session = world.session(CLIENT)
    world.rules.chat_memory.clear_messages(conversation_id=session.pk)
    world.work()
    assert world.provider.sent == []
    assert Turn.objects.get().state == "cancelled"


def test_after_the_commit(session: ChatSession, django_capture_on_commit_callbacks: Any) -> None:
    calls: list[str] = []

    class Recorder(MemoryManagementStrategy):
        def post_add_messages_hook(self, *, session: ChatSession) -> None:
            calls.append(f"hook at {session.message_counter}")

    service = ChatMemoryService(
        strategy=Recorder(), embed=lambda session_id: calls.append("vectors")
    )
    with django_capture_on_commit_callbacks(execute=True):
        service.add_messages(conversation_id=session.pk, messages=[said("a"), said("b")])
        assert calls == []
    assert sorted(calls) == ["hook at 2", "vectors"]


def test_a_failing_hook_harms_nothing(
    session: ChatSession, django_capture_on_commit_callbacks: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(MemoryManagementStrategy):
        def post_add_messages_hook(self, *, session: ChatSession) -> None:
            raise RuntimeError("no room")

    service = ChatMemoryService(strategy=Broken())
    with django_capture_on_commit_callbacks(execute=True):
        service.add_messages(conversation_id=session.pk, messages=[said("a")])
    assert len(service.get_messages(conversation_id=session.pk)) == 1
    assert "no room" in caplog.text


@pytest.mark.parametrize("wrong", ["abc", "zzz", "", 7, None, b"x", ["a"]])
def test_a_wrong_id_is_invalid_data(db: None, service: ChatMemoryService, wrong: Any) -> None:
    for call in (
        lambda: service.get_messages(conversation_id=wrong),
        lambda: service.add_messages(conversation_id=wrong, messages=[said("x")]),
        lambda: service.clear_messages(conversation_id=wrong),
        lambda: service.get_conversation_history(conversation_id=wrong),
    ):
        with pytest.raises(DataValidationError, match="conversation_id: must be a session_id"):
            call()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"messages": [{"role": "user", "content": "x"}]}, "messages\\[0\\]: must be a New"),
        ({"messages": "text"}, "messages: must be a list"),
        ({"messages": None}, "messages: must be a list"),
        ({"messages": [said("x", ["user"])]}, "messages\\[0\\].role: unknown role"),
        ({"messages": [], "now": "today"}, "now: must be a date and time"),
        ({"limit": "2"}, "limit: must be 1 or more"),
        ({"limit": True}, "limit: must be 1 or more"),
        ({"limit": 0}, "limit: must be 1 or more"),
        ({"before": NOON.replace(tzinfo=None)}, "before: must have a time zone"),
        ({"before": "2026-01-01"}, "before: must be a date and time"),
        ({"max_messages": 0}, "max_messages: must be 1 or more"),
        ({"user_role": "boss"}, "user_role: must be client or godfather"),
    ],
)
def test_a_shape_that_is_wrong_is_invalid_data(
    service: ChatMemoryService, session: ChatSession, call: dict[str, Any], says: str
) -> None:
    """Seed 003, 5.7: no other error leaves the service."""
    if "messages" in call:
        method: Any = service.add_messages
    elif "limit" in call or "before" in call:
        method = service.get_messages
    else:
        method = service.get_conversation_history
    with pytest.raises(DataValidationError, match=says):
        method(conversation_id=session.pk, **call)


def test_the_history_suits_chat_models(service: ChatMemoryService, session: ChatSession) -> None:
    roles = ["system", "user", "tool", "assistant", "summary", "user"]
    messages = [said(f"m{place}", role) for place, role in enumerate(roles)]
    service.add_messages(conversation_id=session.pk, messages=messages)
    history = service.get_conversation_history(conversation_id=session.pk)
    # The summary stands first; system text from outside commands nothing, and a tool's result
    # means nothing without its call.
    assert [(entry["role"], entry["content"]) for entry in history] == [
        ("system", "m4"),
        ("user", "m1"),
        ("assistant", "m3"),
        ("user", "m5"),
    ]
    newest = service.get_conversation_history(conversation_id=session.pk, max_messages=1)
    assert newest == [{"role": "system", "content": "m4"}, {"role": "user", "content": "m5"}]


def test_the_history_is_the_one_of_the_prompt(world: World) -> None:
    """One implementation: the summary, and answers with their questions."""
    world.summarizing(4)
    world.with_chat_memory(limits=Limits(client=250))
    for text in ("My locker code is 4711", "And the alarm is 0815"):
        world.say(CLIENT, f"{text}. " + "x" * 600)
    world.sum_up(CLIENT)
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    world.work()
    world.say(CLIENT, "three")
    history = world.rules.chat_memory.get_conversation_history(
        conversation_id=world.session(CLIENT).pk
    )
    asked = [message.content for message in world.prompt()]
    assert history[0]["role"] == "system"
    assert history[0]["content"] in asked[0]
    assert [entry["content"] for entry in history[1:-1]] == asked[1:]
