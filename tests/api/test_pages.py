"""Pages by cursor, while others write."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Chat, Message
from tests.api.calling import Api, error_of
from tests.api.test_sessions import opened
from tests.plans import plans_of, rows_scanned_in_sequence
from tests.world import CLIENT

pytestmark = pytest.mark.django_db

# So many rows, and so many on a page.
WALKS = [(5_000, 100), pytest.param(100_000, 1_000, marks=pytest.mark.scale)]

CHATS = """
INSERT INTO sessions_app_chat (id, whatsapp_chat, provider, number_id, is_group, client_name,
    client_phone, language, created_at, updated_at)
SELECT gen_random_uuid(), 'many' || number || '@c.us', 'console', '', false, '', '', 'en',
    -- Many share a time: the id decides between them.
    timestamptz '2026-01-01' + (number / 10) * interval '1 second', now()
FROM generate_series(1, %s) AS number
"""
MESSAGES = """
INSERT INTO sessions_app_message (message_id, session_id, chat_id, order_num, role, kind, content,
    sender, recipient, timestamp, received_at, tokens, was_received, delivery_status, provider,
    number_id, media, metadata, history, terms, term_count)
SELECT gen_random_uuid(), %s, %s, number, 'user', 'text', 'message ' || number, '', '',
    now(), now(), 3, true, '', '', '', '{}', '{}', '[]', '{}', 0
FROM generate_series(1, %s) AS number
"""


def run(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        cursor.execute("ANALYZE sessions_app_chat, sessions_app_message")


@pytest.mark.parametrize(("many", "limit"), WALKS)
def test_a_walk_over_all_chats_while_others_write_misses_nothing_and_repeats_nothing(
    api: Api, many: int, limit: int
) -> None:
    run(CHATS, many)
    there = {str(key) for key in Chat.objects.values_list("pk", flat=True)}
    chance = random.Random(7)
    seen: list[str] = []
    gone: set[str] = set()
    queries = set()
    path: str | None = f"chats/?limit={limit}"
    while path:
        with CaptureQueriesContext(connection) as asked:
            answer = api.get(path.removeprefix("http://testserver")).json()
        queries.add(len(asked))
        seen += [row["object_id"] for row in answer["results"]]
        path = answer["next"]
        # New ones at the beginning, in the middle and at the end of the list; some go.
        middle = datetime(2026, 1, 1) + timedelta(seconds=many / 20)
        for moment in (datetime(2025, 6, 1), middle, datetime(2027, 1, 1)):
            name = f"new{chance.randrange(10**9)}@c.us"
            fresh = Chat.objects.create(whatsapp_chat=name, provider="console")
            Chat.objects.filter(pk=fresh.pk).update(created_at=moment.replace(tzinfo=timezone.utc))
        left = chance.sample(sorted(there - gone), 3)
        Chat.objects.filter(pk__in=left).delete()
        gone |= set(left)
    assert len(seen) == len(set(seen)), "something came twice"
    missed = there - gone - set(seen)
    assert not missed
    # Token, last use, count of calls, page, addresses: however far the walk has come.
    assert len(queries - {max(queries)}) <= 1, queries
    assert max(queries) <= 5


def test_a_page_far_back_reads_as_few_rows_as_the_first(api: Api) -> None:
    session_id = opened(api)["session_id"]
    run(MESSAGES, session_id, Chat.objects.get(whatsapp_chat=CLIENT).pk, 20_000)
    first = api.get(f"sessions/{session_id}/messages/?limit=10").json()
    far = first["next"].removeprefix("http://testserver")
    with CaptureQueriesContext(connection) as asked:
        assert len(api.get(far).json()["results"]) == 10
    assert sum(map(rows_scanned_in_sequence, plans_of(asked))) < 100


def test_a_page_far_back_of_all_chats_is_read_by_an_index(api: Api) -> None:
    run(CHATS, 20_000)
    first = api.get("chats/?limit=10").json()
    with CaptureQueriesContext(connection) as asked:
        assert len(api.get(first["next"].removeprefix("http://testserver")).json()["results"]) == 10
    assert sum(map(rows_scanned_in_sequence, plans_of(asked))) < 100


def test_a_walk_by_cursors_sees_everything_once_and_goes_back(api: Api) -> None:
    run(CHATS, 95)
    pages = [api.get("chats/?limit=10").json()]
    while cursor := pages[-1]["next_cursor"]:
        pages.append(api.get(f"chats/?limit=10&cursor={cursor}").json())
    seen = [row["object_id"] for page in pages for row in page["results"]]
    assert sorted(seen) == sorted(str(key) for key in Chat.objects.values_list("pk", flat=True))
    for page, following in zip(pages, pages[1:], strict=False):
        back = api.get(f"chats/?limit=10&cursor={following['previous_cursor']}").json()
        assert back["results"] == page["results"]
    assert pages[0]["previous_cursor"] is None
    for way in ("next", "previous"):
        (given,) = parse_qs(urlsplit(pages[1][way]).query)["cursor"]
        assert given == pages[1][f"{way}_cursor"]


def test_a_walk_ends_where_more_rows_share_one_time_than_a_page_holds(api: Api) -> None:
    run(CHATS, 2_500)
    Chat.objects.update(created_at=datetime(2026, 1, 1, tzinfo=timezone.utc))
    seen: list[str] = []
    path: str | None = "chats/?limit=400"
    while path:
        answer = api.get(path.removeprefix("http://testserver")).json()
        seen += [row["object_id"] for row in answer["results"]]
        path = answer["next"]
        Chat.objects.filter(pk__in=seen[-3:]).delete()
        assert len(seen) <= 2_500
    assert len(set(seen)) == 2_500


def test_a_list_of_nothing_has_no_other_pages(api: Api) -> None:
    ways = {"next": None, "previous": None, "next_cursor": None, "previous_cursor": None}
    assert api.get("chats/").json() == {"results": [], **ways}
    assert not Message.objects.exists()


def test_a_cursor_of_another_list_is_refused(api: Api) -> None:
    run(CHATS, 3)
    cursor = api.get("chats/?limit=1").json()["next_cursor"]
    assert api.get(f"chats/?limit=1&cursor={cursor}").status_code == 200
    for other in ("sessions/", "memories/", "receipts/", "audit/", "files/", "documents/"):
        refused = error_of(api.get(f"{other}?cursor={cursor}"), 400)
        assert (refused["code"], refused["attr"]) == ("invalid_cursor", "cursor"), other
