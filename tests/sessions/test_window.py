"""The window of a session: right after any sequence, and as cheap with many messages."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from sessions_app.conversations.message_store import NewMessage
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.history.strategies import SummarizationStrategy
from sessions_app.models import Chat, ChatSession
from sessions_app.models.chats import Limits
from tests.plans import rows_read

NOW = datetime(2026, 1, 10, tzinfo=timezone.utc)


def new_session() -> ChatSession:
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="cloud")
    return ChatSession.objects.create(chat=chat, created_at=NOW, last_active=NOW)


TOKENS = 40
LIMIT = 1_000
WINDOW = LIMIT // TOKENS


def fill(session: ChatSession, count: int) -> None:
    """As if so many messages had been added one by one, and all but the last ten summed up in
    runs of ten."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO sessions_app_message (message_id, session_id, chat_id, order_num, role,
                kind, content, sender, recipient, timestamp, received_at, tokens, was_received,
                delivery_status, provider, number_id, media, metadata, history, terms, term_count)
            SELECT gen_random_uuid(), %s, %s, number, 'user', 'text', rpad('', 160, 'x'), '', '',
                %s, %s, %s, true, '', '', '', '{}', '{}', '[]', '{}', 0
            FROM generate_series(1, %s) number
            """,
            [session.pk, session.chat_id, NOW, NOW, TOKENS, count],
        )
        cursor.execute("ANALYZE sessions_app_message")
    session.message_counter = count
    session.window_start = count - WINDOW + 1
    session.total_tokens = TOKENS * WINDOW
    session.summarized_until = count - 10
    session.save()


def the_service() -> ChatMemoryService:
    strategy = SummarizationStrategy(summarize_every_n_messages=20)
    return ChatMemoryService(
        limits=Limits(client=LIMIT), godfather={"15550199999@c.us"}, strategy=strategy
    )


def said(count: int) -> list[NewMessage]:
    return [NewMessage("user", "new".ljust(160, "!"), NOW) for _ in range(count)]


def add_one(session: ChatSession) -> None:
    the_service().add_messages(conversation_id=session.pk, messages=said(1))


def add_twenty(session: ChatSession) -> None:
    the_service().add_messages(conversation_id=session.pk, messages=said(20))


def read_the_last_20(session: ChatSession) -> None:
    found = the_service().get_messages(conversation_id=session.pk, limit=20)
    assert len(found) == 20


def compose(session: ChatSession) -> None:
    history = the_service().history(session.messages.latest("order_num"), user_role="client")
    assert 15 < len(history.messages) <= WINDOW


def prune(session: ChatSession) -> None:
    """One message becomes so long that most of the window goes."""
    message = session.messages.latest("order_num")
    with transaction.atomic():
        the_service().retext(message=message, content="long" * (LIMIT - TOKENS))


def look_for_summaries(session: ChatSession) -> None:
    session.refresh_from_db()
    the_service().strategy.post_add_messages_hook(session=session)


OPERATIONS = (add_one, add_twenty, read_the_last_20, compose, prune, look_for_summaries)


def costs(count: int) -> dict[str, tuple[int, int]]:
    """Queries and rows of each operation on a session of so many messages."""
    Chat.objects.all().delete()
    session = new_session()
    fill(session, count)
    with connection.cursor() as cursor:
        # Else the plans depend on what autovacuum saw last.
        cursor.execute("ANALYZE sessions_app_message, sessions_app_turn")
    found = {}
    for operation in OPERATIONS:
        with CaptureQueriesContext(connection) as queries:
            operation(session)
        found[operation.__name__] = (len(queries), rows_read(queries))
    return found


@pytest.mark.slow
@pytest.mark.django_db
def test_every_operation_costs_the_same_at_100_and_at_20_000_messages() -> None:
    few, many = costs(100), costs(20_000)
    for name, (queries, rows) in many.items():
        # For a small table PostgreSQL may choose a plan that reads a few rows more.
        assert queries == few[name][0], name
        assert rows <= few[name][1], name
    assert max(queries for queries, _ in many.values()) < 20
    assert max(rows for _, rows in many.values()) < 700


@pytest.mark.django_db
def test_adding_takes_as_many_queries_for_one_message_as_for_a_thousand() -> None:
    counted = []
    for count in (1, 1_000):
        session = new_session()
        with CaptureQueriesContext(connection) as queries:
            the_service().add_messages(conversation_id=session.pk, messages=said(count))
        counted.append(len(queries))
        Chat.objects.all().delete()
    one, thousand = counted
    # Beyond one message the window moves; rows go in by batches of some hundreds.
    assert thousand <= one + 6
