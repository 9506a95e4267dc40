"""A window worked out afresh is the one that pruning message by message leads to."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings, strategies as st
from hypothesis.extra.django import TestCase

from sessions_app.conversations.message_store import KEEP_LAST, WINDOW_BATCH, window_recompute
from sessions_app.models import ChatSession, Message
from tests.sessions.test_window import NOW, new_session


def fill(session: ChatSession, tokens: dict[int, int]) -> None:
    """Messages of so many tokens, by their order_num."""
    Message.objects.bulk_create(
        Message(
            session=session,
            chat=session.chat,
            order_num=number,
            role="user",
            content="",
            timestamp=NOW,
            tokens=count,
        )
        for number, count in tokens.items()
    )


def recomputed(session: ChatSession, limit: int) -> tuple[int, int, int]:
    window_recompute(session=session, token_limit=limit)
    return session.window_start, session.total_tokens, session.message_counter


class AnyMessages(TestCase):
    @settings(max_examples=25, deadline=None)
    @given(
        limit=st.integers(0, 100),
        tokens=st.dictionaries(st.integers(1, 2_000_000), st.integers(0, 60), max_size=25),
    )
    def test_it_holds_the_newest_that_fit(self, limit: int, tokens: dict[int, int]) -> None:
        session = new_session()
        fill(session, tokens)
        start, total, counter = recomputed(session, limit)
        window = [number for number in sorted(tokens) if number >= start]
        assert total == sum(tokens[number] for number in window)
        assert total <= limit or len(window) <= KEEP_LAST
        assert len(window) >= min(KEEP_LAST, len(tokens))
        assert counter == max(tokens, default=0)
        before = [number for number in sorted(tokens) if number < start]
        if before:
            assert total + tokens[before[-1]] > limit
        else:
            assert start == 1


@pytest.mark.django_db
def test_it_reads_no_further_than_the_window_goes() -> None:
    session = new_session()
    fill(session, dict.fromkeys(range(1, 2_001), 10))
    with CaptureQueriesContext(connection) as queries:
        assert recomputed(session, 3_000) == (1_701, 3_000, 2_000)
    assert len(queries) == 300 // WINDOW_BATCH + 1


@pytest.mark.django_db
@pytest.mark.parametrize("size", [0, 1, WINDOW_BATCH, WINDOW_BATCH + 1, 2 * WINDOW_BATCH])
def test_it_is_right_where_a_batch_ends_with_the_session(size: int) -> None:
    session = new_session()
    fill(session, dict.fromkeys(range(1, size + 1), 1))
    assert recomputed(session, 10_000) == (1, size, size)
