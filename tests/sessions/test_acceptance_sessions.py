"""Seed 002's acceptance criteria, edge cases and errors of sessions, by their ids."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from uuid import UUID

import pytest

from sessions_app.conversations.message_store import NewMessage, messages_add
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.inbound.receive import events_receive
from sessions_app.models import ChatSession, Message
from tests.world import CLIENT, World, message_from

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


def test_ac_session_002_a_message_has_its_number_and_tokens(session: ChatSession) -> None:
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
def test_edge_004_it_ends_at_its_timeout_exactly(world: World, idle: timedelta, same: bool) -> None:
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


def test_err_session_007_an_unusual_chat_id_is_accepted_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    odd = message_from(CLIENT, "hello")
    party = type(odd.party)(other="strange-id")
    with caplog.at_level(logging.WARNING):
        world.receive(message_from(CLIENT, "hello", party=party))

    assert world.chat("strange-id").client_phone == ""
    assert "Unusual WhatsApp chat id strange-id" in caplog.text
