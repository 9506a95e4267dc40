"""The window of a session: right after any sequence, and as cheap with many messages."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from django.db import connection
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from sessions_app.models import Chat, ChatSession, Message, Turn
from sessions_app.selectors import history_for_turn
from sessions_app.services.messages import NewMessage, message_retext, messages_add
from sessions_app.services.window import KEEP_LAST

NOW = datetime(2026, 1, 10, tzinfo=timezone.utc)


def new_session() -> ChatSession:
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="cloud")
    return ChatSession.objects.create(chat=chat, created_at=NOW, last_active=NOW)


def add(session: ChatSession, content: str, limit: int = 4_000) -> Message:
    new = NewMessage(role="user", content=content, timestamp=NOW)
    (message,) = messages_add(session=session, new=[new], token_limit=limit, now=NOW)
    return message


class AnySequence(TestCase):
    """Adds and changed texts, in any order."""

    @settings(max_examples=60, deadline=None)
    @given(
        limit=st.integers(1, 60),
        steps=st.lists(st.tuples(st.integers(0, 120), st.integers(-1, 40)), max_size=40),
    )
    def test_the_windows_sum_is_right_and_within_the_limit(
        self, limit: int, steps: list[tuple[int, int]]
    ) -> None:
        """A step: (length, message to change, or -1 to add one)."""
        session = new_session()
        for length, place in steps:
            message = session.messages.filter(order_num=place).first()
            if message is None:
                session.refresh_from_db()
                add(session, "x" * length, limit)
            else:
                session.refresh_from_db()
                message_retext(
                    message=message, content="y" * length, session=session, token_limit=limit
                )
                message.save()
            session.refresh_from_db()
            self._check(session, limit)
        numbers = session.messages.order_by("order_num").values_list("order_num", flat=True)
        assert list(numbers) == list(range(1, session.message_counter + 1))

    def _check(self, session: ChatSession, limit: int) -> None:
        window = session.messages.filter(order_num__gte=session.window_start)
        total = window.aggregate(total=Sum("tokens"))["total"] or 0
        assert session.total_tokens == total
        assert total <= limit or window.count() <= KEEP_LAST
        assert window.count() >= min(KEEP_LAST, session.message_counter)


def fill(session: ChatSession, count: int) -> None:
    """As if these had been added one by one; 40 tokens each, the window holds the last 100."""
    Message.objects.bulk_create(
        Message(
            session=session,
            chat=session.chat,
            order_num=number,
            role="user",
            content=f"message {number} ".ljust(160, "."),
            timestamp=NOW,
            tokens=40,
        )
        for number in range(1, count + 1)
    )
    session.message_counter = count
    session.window_start = max(1, count - 99)
    session.total_tokens = 40 * min(count, 100)
    session.save()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE sessions_app_message")


def rows_read(queries: CaptureQueriesContext) -> int:
    """Rows that the plans of all SELECTs touched, those filtered away included."""
    total = 0
    for query in queries.captured_queries:
        if not query["sql"].startswith("SELECT"):
            continue
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query["sql"])
            (plan,) = cursor.fetchone()[0]
        total += _touched(plan["Plan"])
    return total


def _touched(plan: dict) -> int:
    dropped = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
    own = (plan["Actual Rows"] + dropped) * plan["Actual Loops"]
    return int(own) + sum(_touched(child) for child in plan.get("Plans", []))


def _cost_of_a_message(session: ChatSession) -> tuple[int, int]:
    """Adding one message (it prunes one) and composing its prompt: queries and rows."""
    with CaptureQueriesContext(
        connection,
    ) as queries:
        message = add(session, "the newest".ljust(160, "!"))
        turn = Turn(chat=session.chat, session=session, message=message, asked_at=NOW)
        history = history_for_turn(turn=turn, max_tokens=4_000)
    assert len(history.messages) == 100
    return len(queries), rows_read(queries)


@pytest.mark.django_db
def test_adding_pruning_and_composing_cost_the_same_at_100_and_10_000_messages() -> None:
    costs = []
    for count in (100, 10_000):
        Chat.objects.all().delete()
        session = new_session()
        fill(session, count)
        costs.append(_cost_of_a_message(session))
        assert session.window_start == count - 98, "one message left the window"

    (few_queries, few_rows), (many_queries, many_rows) = costs
    # At 100 messages the walk ends with the session, at 10,000 one batch later.
    assert many_queries <= few_queries + 1
    assert many_rows <= few_rows + 200 < 1_000
