"""A million messages in fifty thousand sessions: what is asked for stays as small as it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.conversations.message_store import NewMessage
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.history.clear_session import (
    sessions_archive,
    sessions_due,
    sessions_expire,
    sessions_overdue,
)
from sessions_app.history.strategies import SummarizationStrategy
from sessions_app.models import ChatSession, Message
from tests.plans import rows_read

pytestmark = [pytest.mark.scale, pytest.mark.django_db]

SESSIONS = 50_000
MESSAGES_EACH = 20
OVERDUE = 1_200
CHATS = """
INSERT INTO sessions_app_chat (id, whatsapp_chat, provider, number_id, is_group, client_name,
    client_phone, language, created_at, updated_at)
SELECT gen_random_uuid(), number || '@c.us', 'cloud', '', false, '', '', '', now(), now()
FROM generate_series(1, %s) number
"""
ACTIVE = """
INSERT INTO sessions_app_chatsession (session_id, chat_id, status, created_at, last_active,
    message_counter, total_tokens, window_start, summarized_until)
SELECT gen_random_uuid(), id, 'active', now(), now(), %s, %s * 40, 1, 0 FROM sessions_app_chat
"""
MESSAGES = """
INSERT INTO sessions_app_message (message_id, session_id, chat_id, order_num, role, kind, content,
    sender, recipient, timestamp, received_at, tokens, was_received, delivery_status, provider,
    number_id, media, metadata, history, terms, term_count)
SELECT gen_random_uuid(), session_id, chat_id, number, 'user', 'text', rpad('', 160, 'x'), '', '',
    now(), now(), 40, true, '', '', '', '{}', '{}', '[]', '{}', 0
FROM sessions_app_chatsession, generate_series(1, %s) number
"""


@pytest.fixture(scope="module")
def a_million(django_db_setup: None, django_db_blocker: object) -> Iterator[None]:
    """Filled once; each test's own changes are undone."""
    with django_db_blocker.unblock(), connection.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute(CHATS, [SESSIONS])
        cursor.execute(ACTIVE, [MESSAGES_EACH, MESSAGES_EACH])
        cursor.execute(MESSAGES, [MESSAGES_EACH])
        cursor.execute("ANALYZE")
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute("TRUNCATE sessions_app_chat CASCADE")


@pytest.mark.usefixtures("a_million")
def test_what_is_due_is_found_by_its_index_and_nothing_else_is_read() -> None:
    now = timezone.now()
    overdue = ChatSession.objects.order_by("pk").values_list("pk", flat=True)[:OVERDUE]
    ChatSession.objects.filter(pk__in=list(overdue)).update(last_active=now - timedelta(days=90))
    due = sessions_due(now=now, timeout=timedelta(hours=24))[:500]
    assert "sessions_to_expire" in due.explain()
    with CaptureQueriesContext(connection) as queries:
        assert len(due) == 500
    assert rows_read(queries) < 5_000, "of 50,000 sessions"

    assert sessions_expire(now=now, timeout=timedelta(hours=24)) == OVERDUE
    old = sessions_overdue(now=now, older_than=timedelta(days=30))[:500]
    assert "sessions_to_archive" in old.explain()
    assert sessions_archive(now=now, older_than=timedelta(days=30)) == OVERDUE
    with CaptureQueriesContext(connection) as queries:
        assert sessions_expire(now=now, timeout=timedelta(hours=24)) == 0
        assert sessions_archive(now=now, older_than=timedelta(days=30)) == 0
    assert rows_read(queries) < 5_000


@pytest.mark.usefixtures("a_million")
def test_a_conversation_reads_its_own_rows_alone() -> None:
    assert Message.objects.count() >= SESSIONS * MESSAGES_EACH
    service = ChatMemoryService(strategy=SummarizationStrategy())
    session = ChatSession.objects.order_by("pk")[SESSIONS // 2]
    said = [NewMessage("user", "new", timezone.now())]
    with CaptureQueriesContext(connection) as queries:
        service.add_messages(conversation_id=session.pk, messages=said)
        found = service.get_messages(conversation_id=session.pk, limit=20)
        service.get_conversation_history(conversation_id=session.pk)
    assert found[-1].order_num == MESSAGES_EACH + 1
    assert len(queries.captured_queries) < 20
    assert rows_read(queries) < 200
