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


def test_a_cursor_belongs_to_its_filters_its_order_and_its_address(api: Api) -> None:
    sessions = [opened(api, name)["session_id"] for name in ("1@c.us", "2@c.us", "3@c.us")]
    for session_id in sessions[:2]:
        said = [{"role": "user", "content": f"message {number}"} for number in range(3)]
        api.post(f"sessions/{session_id}/messages/", {"messages": said})
    messages = f"sessions/{sessions[0]}/messages/?limit=1"
    for first, others in (
        ("sessions/?limit=1", ["&status=active", "&ordering=created_at", "&where={}"]),
        ("sessions/?limit=1&status=active&status=expired", ["", "&status=active"]),
        (messages, ["&role=user", "&ordering=order_num"]),
    ):
        cursor = api.get(first).json()["next_cursor"]
        for free in ("limit=1", "limit=2", "limit=1&format=json", "limit=1&fields=session_id"):
            given = f"{first.replace('limit=1', free)}&cursor={cursor}"
            assert api.get(given).status_code == 200, given
        for other in others:
            given = first.partition("&")[0]
            refused = error_of(api.get(f"{given}{other}&cursor={cursor}"), 400)
            assert (refused["code"], refused["attr"]) == ("invalid_cursor", "cursor")
    other = messages.replace(sessions[0], sessions[1])
    assert api.get(f"{messages.replace(sessions[0], sessions[0].upper())}&cursor={cursor}").json()
    assert error_of(api.get(f"{other}&cursor={cursor}"), 400)["attr"] == "cursor"


SORTED = [("memories/", "created_at"), ("memories/", "updated_at"), ("sessions/", "created_at"),
          ("sessions/", "last_active"), ("chats/", "created_at")]  # fmt: skip


@pytest.mark.parametrize(("path", "name"), SORTED)
def test_lists_are_sorted_both_ways_across_pages(api: Api, path: str, name: str) -> None:
    for number in range(5):
        session_id = opened(api, f"{number + 1}@c.us")["session_id"]
        said = [{"role": "user", "content": "hello"}]
        api.post(f"sessions/{session_id}/messages/", {"messages": said})
        api.post("memories/", {"content": f"fact number {number}", "visibility": "public"})
    rows = api.walk(f"{path}?limit=2&ordering={name}")
    assert len(rows) == 5
    assert rows == sorted(rows, key=lambda row: row[name])
    assert api.walk(f"{path}?limit=2&ordering=-{name}") == rows[::-1]
    error = error_of(api.get(f"{path}?ordering=content"), 400)
    assert (error["attr"], name in error["detail"]) == ("ordering", True)


def test_messages_are_read_from_the_first_one_on(api: Api) -> None:
    session_id = opened(api)["session_id"]
    said = [{"role": "user", "content": f"message {number}"} for number in range(5)]
    path = f"sessions/{session_id}/messages/"
    api.post(path, {"messages": said})

    def numbers(ordering: str) -> list[int]:
        return [row["order_num"] for row in api.walk(f"{path}?limit=2&ordering={ordering}")]

    assert numbers("order_num") == [1, 2, 3, 4, 5]
    assert numbers("-order_num") == [5, 4, 3, 2, 1]


def test_answers_have_the_fields_that_are_chosen(api: Api) -> None:
    session = opened(api)
    memory = api.post("memories/", {"content": "We open at 9"}).json()
    details = (
        f"memories/{memory['memory_id']}/",
        f"sessions/{session['session_id']}/",
        f"chats/{CLIENT}/",
    )
    for path in (*details, "memories/", "sessions/", "chats/", "receipts/", "audit/"):
        whole = api.get(path)
        rows = whole.json().get("results", [whole.json()])
        names = sorted(rows[0])[:2] if rows else ["kind"]
        answer = api.get(f"{path}?fields={names[0]},%20{names[-1]}")
        chosen = answer.json().get("results", [answer.json()])
        assert chosen == [{name: row[name] for name in names} for row in rows]
        assert answer.headers.get("ETag") == whole.headers.get("ETag")
        for wrong in ("nothing", "memory_id,", "terms"):
            error = error_of(api.get(f"{path}?fields={wrong}"), 400)
            assert (error["attr"], error["code"]) == ("fields", "unknown_field")
            assert set(names) <= set(error["detail"].replace(",", " ").replace(".", " ").split())
    etag = api.get(details[0]).headers["ETag"]
    assert api.get(f"{details[0]}?fields=content", If_None_Match=etag).status_code == 304
    assert error_of(api.get("memories/export/?fields=content"), 400)["code"] == "unknown_parameter"
    assert error_of(api.post("memories/?fields=content", {"content": "x"}), 400)
