"""Measures short-term memory on long sessions and many of them: run from the project's root.

    python benchmarks/measure_sessions.py [--messages 100000] [--sessions 50000] [--rounds 30]

Fills a database of its own, in a temporary folder. For a session of 100 messages and a long
one: adding a message, reading the last twenty, composing what a prompt holds, and a message so
long that the window is pruned. For many sessions with twenty messages each: expiring and
archiving all that are due. Prints milliseconds, and what they were measured on.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import timedelta

from own_database import machine, own_database

# isort: split

from django.db import connection, transaction
from django.utils import timezone

from sessions_app.conversations.message_store import NewMessage
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.history.clear_session import sessions_archive, sessions_expire
from sessions_app.history.strategies import SummarizationStrategy
from sessions_app.models import Chat, ChatSession

MESSAGE_SQL = """
INSERT INTO sessions_app_message (message_id, session_id, chat_id, order_num, role, kind, content,
    sender, recipient, timestamp, received_at, tokens, was_received, delivery_status, provider,
    number_id, media, metadata, history, terms, term_count)
SELECT gen_random_uuid(), session_id, chat_id, number, 'user', 'text',
    rpad('message ' || number, 160, '.'), '', '', now(), now(), 40, true, '', '', '', '{}', '{}',
    '[]', '{}', 0
"""
MANY_CHATS_SQL = """
INSERT INTO sessions_app_chat (id, whatsapp_chat, provider, number_id, is_group, client_name,
    client_phone, language, created_at, updated_at)
SELECT gen_random_uuid(), number || '@c.us', 'cloud', '', false, '', '', '', now(), now()
FROM generate_series(1, %s) number
"""
MANY_SESSIONS_SQL = """
INSERT INTO sessions_app_chatsession (session_id, chat_id, status, created_at, last_active,
    message_counter, total_tokens, window_start, summarized_until)
SELECT gen_random_uuid(), id, 'active', now(), now() - interval '90 days', 20, 800, 1, 0
FROM sessions_app_chat WHERE provider = 'cloud'
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="in the long session")
    parser.add_argument("--sessions", type=int, default=50_000, help="of twenty messages each")
    parser.add_argument("--rounds", type=int, default=30, help="of each measurement")
    arguments = parser.parse_args()
    with own_database():
        print(f"{machine()}\n")
        for count in (100, arguments.messages):
            measure_session(count, arguments.rounds)
        measure_expiry(arguments.sessions)


def measure_session(count: int, rounds: int) -> None:
    """One session of so many messages."""
    now = timezone.now()
    chat = Chat.objects.create(whatsapp_chat=f"long-{count}@c.us", provider="console")
    session = ChatSession.objects.create(
        chat=chat,
        created_at=now,
        last_active=now,
        message_counter=count,
        window_start=max(count - 99, 1),
        total_tokens=4_000,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            MESSAGE_SQL
            + "FROM sessions_app_chatsession, generate_series(1, %s) number WHERE session_id = %s",
            [count, session.pk],
        )
        cursor.execute("ANALYZE sessions_app_message")
    service = ChatMemoryService(strategy=SummarizationStrategy())

    def said(length: int = 160) -> list[NewMessage]:
        return [NewMessage("user", "x" * length, timezone.now())]

    def compose() -> None:
        newest = session.messages.latest("order_num")
        service.history(newest, user_role="client")

    def prune() -> None:
        with transaction.atomic():
            service.add_messages(conversation_id=session.pk, messages=said(15_000))

    print(f"A session of {count:,} messages (median and slowest of {rounds}, ms)")
    show(
        "add a message",
        rounds,
        lambda: service.add_messages(conversation_id=session.pk, messages=said()),
    )
    show(
        "read the last 20",
        rounds,
        lambda: service.get_messages(conversation_id=session.pk, limit=20),
    )
    show("compose history and passage", rounds, compose)
    show("add one that prunes the window", rounds, prune)
    print()


def measure_expiry(count: int) -> None:
    """Many sessions, all of them long overdue."""
    with connection.cursor() as cursor:
        cursor.execute(MANY_CHATS_SQL, [count])
        cursor.execute(MANY_SESSIONS_SQL)
        cursor.execute(
            MESSAGE_SQL + "FROM sessions_app_chatsession, generate_series(1, 20) number "
            "WHERE message_counter = 20 AND total_tokens = 800"
        )
        cursor.execute("SELECT count(*) FROM sessions_app_message")
        (messages,) = cursor.fetchone()
        cursor.execute("ANALYZE")
    now = timezone.now()
    print(f"{count:,} overdue sessions among {messages:,} messages")
    for name, work in (
        ("expire all", lambda: sessions_expire(now=now, timeout=timedelta(hours=24))),
        ("archive all", lambda: sessions_archive(now=now, older_than=timedelta(days=30))),
        (
            "look again, nothing is due",
            lambda: sessions_expire(now=now, timeout=timedelta(hours=24)),
        ),
    ):
        started = time.perf_counter()
        done = work()
        seconds = time.perf_counter() - started
        rate = f", {done / seconds:,.0f} a second" if done else ""
        print(f"    {name:32} {seconds * 1000:10,.1f} ms ({done:,} sessions{rate})")


def show(name: str, rounds: int, work: Callable[[], object]) -> None:
    """Median and slowest of some rounds."""
    work()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    print(f"    {name:32} {statistics.median(times):8.1f} {max(times):8.1f}")


if __name__ == "__main__":
    main()
