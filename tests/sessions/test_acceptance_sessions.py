"""Seed 002's acceptance criteria, edge cases and errors of sessions, by their ids."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest
from django.db import connections

from sessions_app.conversations.message_store import NewMessage, messages_add
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.inbound.receive import events_receive
from sessions_app.models import ChatSession, Message
from tests.world import CLIENT, GODFATHER, World, message_from

NOON = datetime(2026, 1, 10, 12, 0, 0, tzinfo=timezone.utc)


def active(world: World, whatsapp_chat: str = CLIENT) -> ChatSession:
    return ChatSession.objects.get(chat__whatsapp_chat=whatsapp_chat, status="active")


def conversation_history(*, session: ChatSession) -> list[dict[str, str]]:
    return ChatMemoryService().get_conversation_history(conversation_id=session.pk)


def add(session: ChatSession, content: str, role: str = "user", limit: int = 4_000) -> Message:
    new = NewMessage(role=role, content=content, timestamp=NOON)
    (message,) = messages_add(session=session, new=[new], token_limit=limit, now=NOON)
    return message


@pytest.fixture
def session(world: World) -> ChatSession:
    """A client's session, still without tokens."""
    world.receive(message_from(CLIENT, "hi", from_business=True))
    session = active(world)
    session.messages.all().delete()
    ChatSession.objects.update(message_counter=0, total_tokens=0)
    session.refresh_from_db()
    return session


def window(session: ChatSession) -> list[int]:
    found = session.messages.filter(order_num__gte=session.window_start).order_by("order_num")
    return list(found.values_list("order_num", flat=True))


def test_ac_session_001_the_first_message_of_a_chat_opens_a_session(world: World) -> None:
    before = datetime.now(timezone.utc)
    world.receive(message_from("1234567890@c.us", ""))

    session = active(world, "1234567890@c.us")

    assert isinstance(session.session_id, UUID)
    assert session.whatsapp_chat == "1234567890@c.us"
    assert session.chat.client_phone == "1234567890"
    assert before <= session.created_at <= datetime.now(timezone.utc)
    assert session.created_at.utcoffset() == timedelta(0)
    assert session.total_tokens == 0


def test_ac_session_002_a_message_is_stored_with_its_number_and_tokens(
    session: ChatSession,
) -> None:
    for number in range(5):
        add(session, f"message {number}")
    tokens = session.total_tokens

    message = add(session, "Hello")

    stored = Message.objects.get(message_id=message.message_id)
    assert (stored.session_id, stored.order_num) == (session.session_id, 6)
    assert (stored.role, stored.content, stored.timestamp) == ("user", "Hello", NOON)
    session.refresh_from_db()
    assert (session.message_counter, session.total_tokens) == (6, tokens + 1)
    assert window(session) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("limit", "held", "added"),
    [
        pytest.param(4_000, 3_990, 50, id="AC-SESSION-003 client"),
        pytest.param(100_000, 99_950, 100, id="AC-SESSION-004 godfather"),
    ],
)
def test_ac_session_003_004_the_oldest_leave_the_window_at_the_roles_limit(
    session: ChatSession, limit: int, held: int, added: int
) -> None:
    for _ in range(10):
        add(session, "x" * (held // 10 * 4), limit=limit)
    assert session.total_tokens == held

    add(session, "y" * added * 4, limit=limit)

    session.refresh_from_db()
    assert window(session) == list(range(2, 12))
    assert session.total_tokens == held - held // 10 + added <= limit
    assert session.messages.count() == 11, "pruned messages stay in the database"


@pytest.mark.parametrize(("who", "limit"), [(CLIENT, 4_000), (GODFATHER, 100_000)])
def test_ac_session_003_004_role_001_002_the_limit_is_the_one_of_the_role(
    world: World, who: str, limit: int
) -> None:
    """Whole turns: a window of just the limit keeps everything, one token more prunes."""
    world.say(who, "x" * 4 * (limit - 10))
    session = active(world, who)
    first = session.messages.get(order_num=2)
    assert window(session) == [1, 2], "the last two messages stay, however long"
    assert first.role == "assistant"

    world.say(who, "and?")

    session.refresh_from_db()
    assert session.total_tokens <= limit
    assert 1 not in window(session)
    assert len(window(session)) >= 2


def test_ac_session_006_sessions_survive_a_restart(world: World) -> None:
    for number in range(5):
        world.say(CLIENT, f"message {number}")
    session = active(world)
    before = ChatSession.objects.filter(pk=session.pk).values().get()
    history = conversation_history(session=session)

    again = ChatSession.objects.get(pk=session.pk)

    assert ChatSession.objects.filter(pk=session.pk).values().get() == before
    assert conversation_history(session=again) == history
    assert len(history) == 10
    assert world.say(CLIENT, "still there?")
    assert [message.content for message in world.prompt()][1:-1] == [
        entry["content"] for entry in history
    ]


@pytest.mark.django_db(transaction=True)
def test_ac_session_006_a_fresh_connection_finds_everything(world: World) -> None:
    for number in range(5):
        world.say(CLIENT, f"message {number}")
    session = active(world)
    before = (session.total_tokens, session.created_at, session.last_active)
    connections.close_all()

    again = active(world)

    assert (again.total_tokens, again.created_at, again.last_active) == before
    assert [entry["content"] for entry in conversation_history(session=again)][:2] == [
        "message 0",
        "answer to: message 0",
    ]
    assert len(conversation_history(session=again)) == 10


def test_ac_session_007_history_as_a_model_reads_it(session: ChatSession) -> None:
    add(session, "A")
    add(session, "B", role="assistant")
    add(session, "C")

    assert conversation_history(session=session) == [
        {"role": "user", "content": "A"},
        {"role": "assistant", "content": "B"},
        {"role": "user", "content": "C"},
    ]


def test_edge_001_a_session_without_messages_has_an_empty_history(session: ChatSession) -> None:
    assert conversation_history(session=session) == []


def test_edge_002_a_message_above_the_limit_is_kept_and_warned_of(
    session: ChatSession, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        add(session, f"message number {number}")

    with caplog.at_level(logging.WARNING):
        add(session, "x" * 40_000)

    session.refresh_from_db()
    assert window(session) == [4, 5]
    assert session.messages.get(order_num=5).content == "x" * 40_000
    assert "10000 tokens exceeds the limit of 4000" in caplog.text


@pytest.mark.parametrize(
    ("idle", "same"),
    [
        (timedelta(hours=24) - timedelta(seconds=1), True),
        (timedelta(hours=24), False),
        (timedelta(hours=24, seconds=1), False),
    ],
)
def test_edge_004_a_session_ends_at_its_timeout_to_the_second(
    world: World, idle: timedelta, same: bool
) -> None:
    """AC-SESSION-005's other half: the old one is expired, its history isn't in the new one."""
    last = NOON + timedelta(milliseconds=700)
    old = _receive_at(world, last)

    # Half a second before the timeout is over counts as its end: seconds, not milliseconds.
    new = _receive_at(world, NOON + idle)

    assert (new.pk == old.pk) is same
    old.refresh_from_db()
    assert old.status == ("active" if same else "expired")
    assert len(conversation_history(session=new)) == (2 if same else 1)


def _receive_at(world: World, now: datetime) -> ChatSession:
    event = message_from(CLIENT, "hello", timestamp=now)
    events_receive(received=[event], rules=world.rules, enqueue=world.enqueued.append, now=now)
    return active(world)


def test_err_session_004_an_unknown_role_is_refused(session: ChatSession) -> None:
    with pytest.raises(ValueError, match="Unknown role 'robot': a message's role is one of user"):
        add(session, "beep", role="robot")
    assert session.messages.count() == 0


@pytest.mark.parametrize("content", ["", "  \n "])
def test_err_session_005_an_empty_message_is_stored_with_a_warning(
    session: ChatSession, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    with caplog.at_level(logging.WARNING):
        message = add(session, content)

    assert (message.content, message.tokens) == (content, 0)
    assert "A message without text" in caplog.text


def test_err_session_007_an_unusual_chat_id_is_accepted_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    odd = message_from(CLIENT, "hello")
    party = type(odd.party)(other="strange-id")
    with caplog.at_level(logging.WARNING):
        world.receive(message_from(CLIENT, "hello", party=party))

    assert world.chat("strange-id").client_phone == ""
    assert "Unusual WhatsApp chat id strange-id" in caplog.text
