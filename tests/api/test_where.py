"""The filter grammar `where`, on every resource that has it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories_app.models import Memory
from sessions_app.conversations.chat_queries import token_chats
from tests.api.calling import Api, api_with, error_of
from tests.api.test_memories import stored
from tests.api.test_sessions import opened
from tests.plans import rows_read
from tests.world import CLIENT

pytestmark = pytest.mark.django_db

OTHER = "15550100456@c.us"
# One memory a letter.
SHOP: dict[str, dict[str, Any]] = {
    "a": {"tags": ["vip", "north"], "metadata": {"price": 10, "name": "Blue 100% 'cotton'"}},
    "b": {"tags": ["north"], "metadata": {"price": 9.5, "sizes": ["S", "M"], "sold": True}},
    "c": {"type": "debt", "metadata": {"price": "10", "at": {"shelf": "A", "x.y": 1}}},
    "d": {"type": "debt", "category": "money", "metadata": {"price": None, "sold": 1}},
    "e": {
        "pinned": True,
        "said_at": "2026-01-02T00:00:00Z",
        "metadata": {"sizes": [], '"%s"': 1, "צבע😀": 'כחול😀 \\"\n.'},
    },
}

CONDITIONS: list[tuple[Any, str]] = [
    # Nothing, and logic in every spelling.
    ({}, "abcde"),
    ({"type": "debt", "metadata.price": "10"}, "c"),
    ({"and": [{"kind": "debt"}, {"not": {"category": "money"}}]}, "c"),
    ({"AND": [{"type": "debt"}, {"NOT": [{"category": "money"}]}]}, "c"),
    ({"$or": [{"metadata.price": 10}, {"pinned": True}]}, "ae"),
    ({"not": [{"tags": "vip"}, {"type": "debt"}]}, "be"),
    ({"not": {"not": {"metadata.price": {"gt": 1}}}}, "ab"),
    # A value of each type is only like its own; 10 and 10.0 are one number.
    ({"metadata.price": 10.0}, "a"),
    ({"metadata.price": {"$gte": 9.5}}, "ab"),
    ({"metadata.price": {"gt": 9.5, "lt": 11}}, "a"),
    ({"metadata.price": {"lte": "9"}}, "c"),
    ({"metadata.price": {"gt": "9"}}, ""),
    ({"metadata.price": {"gt": -5}}, "ab"),
    ({"metadata.sold": 1}, "d"),
    ({"metadata.sold": {"in": [True, 7]}}, "b"),
    ({"metadata.sold": {"in": [True, 1]}}, "bd"),
    # What is missing is no value: not equal to any, and null.
    ({"metadata.price": {"ne": 10}}, "bcde"),
    ({"metadata.price": {"not": {"gte": 10}}}, "bcde"),
    ({"metadata.price": {"nin": [10, 9.5]}}, "cde"),
    ({"metadata.price": None}, "de"),
    ({"metadata.price": {"in": [None, 10]}}, "ade"),
    ({"metadata.price": {"exists": True}}, "abcd"),
    ({"metadata.price": {"$exists": False}}, "e"),
    ({"metadata.price": {"in": []}}, ""),
    ({"not": {"metadata.price": {"in": []}}}, "abcde"),
    # Places within, lists, and names that have to be quoted.
    ({"metadata.at.shelf": "A"}, "c"),
    ({"metadata.at": {"eq": {"shelf": "A", "x.y": 1}}}, "c"),
    ({"metadata.at": {"contains": {"shelf": "A"}}}, "c"),
    ({"metadata.at": {"eq": {"shelf": "A"}}}, ""),
    ({"metadata.sizes": ["S", "M"]}, "b"),
    ({"metadata.sizes": ["S"]}, ""),
    ({"metadata.sizes": {"contains": "M"}}, "b"),
    ({"metadata.sizes": {"contains": ["M", "S"]}}, "b"),
    ({"metadata.sizes": {"in": [[], ["S", "M"]]}}, "be"),
    ({"metadata": {"price": 10}}, "a"),
    ({"metadata": {'"%s"': 1}}, "e"),
    ({'metadata."%s"': {"lte": 1}}, "e"),
    ({"metadata.name": {"contains": "100% 'c"}}, "a"),
    ({"metadata.name": {"contains": "blue"}}, ""),
    ({"metadata.name": {"icontains": "bLUE"}}, "a"),
    ({"metadata.name": {"contains": "Bl.e"}}, ""),
    ({"metadata.name": {"contains": ""}}, "a"),
    ({"metadata.צבע😀": {"contains": 'כחול😀 \\"\n'}}, "e"),
    ({"metadata": {"צבע😀": {"gte": "כחול😀"}}}, "e"),
    ({"metadata.price": {"lt": 1e22}}, "ab"),
    ({"metadata.price": {"lt": 10**30}}, "ab"),
    # Columns.
    ({"tags": "north"}, "ab"),
    ({"tags": {"contains": ["vip", "north"]}}, "a"),
    ({"tags": {"in": ["vip", "south"]}}, "a"),
    ({"tags": ["north"]}, "b"),
    ({"tags": []}, "cde"),
    ({"tags": {"in": []}}, ""),
    ({"tags": {"in": [None, "vip"]}}, "acde"),
    ({"tags": {"contains": []}}, "abcde"),
    ({"tags": {"ne": "north"}}, "cde"),
    ({"tags": {"exists": False}}, "cde"),
    ({"category": None}, "abce"),
    ({"category": {"exists": True}}, "d"),
    ({"content": {"contains": "b is"}}, "b"),
    ({"said_at": {"lt": "2026-01-02T00:30:00+01:00"}}, ""),
    ({"said_at": {"lte": "2026-01-02T01:00:00+01:00"}}, "e"),
    ({"created_at": {"gt": "2026-01-01"}}, "abcde"),
    ({"expires_at": {"not": {"gt": "2026-01-01"}}}, "abcde"),
    ({"expires_at": None}, "abcde"),
    ({"told_count": {"lt": 2}, "pinned": {"ne": False}}, "e"),
    ({"whatsapp_chat": "+15550100456"}, "e"),
    ({"whatsapp_chat": {"nin": [OTHER, "15550100999@c.us"]}}, "abcd"),
]


@pytest.fixture(scope="module")
def shop(module_rows: None) -> Api:
    api = api_with()
    for letter, fields in SHOP.items():
        chat = {"whatsapp_chat": OTHER} if letter == "e" else {}
        stored(api, f"{letter} is what the shop sells as number {ord(letter)}", **fields, **chat)
    return api


def letters(rows: list[Any]) -> str:
    return "".join(sorted(row["content"][0] for row in rows))


def query(expression: Any) -> str:
    return "where=" + quote(json.dumps(expression))


def test_a_condition_finds_the_same_in_lists_recall_and_export(shop: Api) -> None:
    body = {"query": "what the shop sells", "min_similarity": 0, "top_k": 100}
    for expression, expected in CONDITIONS:
        listed = letters(shop.walk(f"memories/?limit=2&{query(expression)}"))
        recalled = shop.post("memories/recall/", {**body, "where": expression}).json()["results"]
        lines = b"".join(shop.get(f"memories/export/?{query(expression)}")).splitlines()
        exported = letters([json.loads(line) for line in lines])
        found = (listed, letters(recalled), exported)
        assert found == (expected,) * 3, expression


DEEP: Any = {"type": "x"}
for _ in range(30):
    DEEP = {"not": DEEP}

REFUSED: list[tuple[Any, str]] = [
    ([], "where"),
    ({"and": []}, "where.and"),
    ({"or": {"type": "x"}}, "where.or"),
    ({"and": [{"type": "x"}, {}]}, "where.and[1]"),
    ({"and": [{"type": "x"}, {"metadata.price": {"gt": []}}]}, "where.and[1].metadata.price.gt"),
    ({"metadata.price": {"gt": True}}, "where.metadata.price.gt"),
    ({"metadata.price": {"like": "x"}}, "where.metadata.price.like"),
    ({"metadata.price": {"gt": 1, "x": 1}}, "where.metadata.price.x"),
    ({"metadata.price": {}}, "where.metadata.price"),
    ({"metadata..x": 1}, "where.metadata..x"),
    ({"metadata": 7}, "where.metadata"),
    ({"price": 7}, "where.price"),
    ({"terms": ["x"]}, "where.terms"),
    ({"chat_id": "x"}, "where.chat_id"),
    ({"type": 7}, "where.type"),
    ({"type": {"in": "fact"}}, "where.type.in"),
    ({"type": {"in": ["fact", 7]}}, "where.type.in[1]"),
    ({"type": {"in": ["x"] * 10_000}}, "where.type.in"),
    ({"metadata.x": {"in": [[1]] * 10_000}}, "where.metadata.x.in"),
    ({"tags": 7}, "where.tags"),
    ({"tags": {"gt": "a"}}, "where.tags.gt"),
    ({"created_at": {"gt": "yesterday"}}, "where.created_at.gt"),
    ({"created_at": {"gt": 7}}, "where.created_at.gt"),
    ({"created_at": {"gt": "0001-01-01T00:00:00Z"}}, "where.created_at.gt"),
    ({"pinned": "yes"}, "where.pinned"),
    ({"pinned": {"exists": 1}}, "where.pinned.exists"),
    ({"told_count": 2**40}, "where.told_count"),
    ({"told_count": True}, "where.told_count"),
    ({"told_count": {"in": [1.5]}}, "where.told_count.in[0]"),
    ({"metadata" + ".a" * 2_000: 1}, "where.metadata.a"),
    ({"memory_id": "x"}, "where.memory_id"),
    ({"whatsapp_chat": "nobody at all"}, "where.whatsapp_chat"),
    ({"metadata.n": 10**400}, "where.metadata.n"),
    ({"metadata.n": {"contains": "x" * 10_000}}, "where.metadata.n.contains"),
    ({"metadata.n": [[[[[[[[[[[[1]]]]]]]]]]]]}, "where.metadata.n"),
    ({"or": [{"type": "x"}] * 201}, "where.or[200].type"),
    (DEEP, "where.not"),
]


def test_an_expression_that_makes_no_sense_is_refused_with_its_place(api: Api) -> None:
    for expression, place in REFUSED:
        answers = [api.post("memories/recall/", {"query": "x", "where": expression})]
        if len(json.dumps(expression)) < 5_000:
            answers.append(api.get(f"memories/?{query(expression)}"))
        for answer in answers:
            error = error_of(answer, 400)
            assert error["attr"].startswith(place.replace("[", ".").replace("]", "")), place
            assert error["detail"].startswith(place) or not isinstance(expression, dict), place


@pytest.mark.parametrize("text", ["x", "7", '"x"', "NaN", '{"a": NaN}', '{"type": "\\u0000"}',
                                  '{"type": "\\ud800"}', '{"type":"a","type":"b"}', "[" * 5_000,
                                  '{"metadata.x": 1e999}'])  # fmt: skip
def test_what_is_no_expression_is_refused(api: Api, text: str) -> None:
    error = error_of(api.get(f"memories/?where={quote(text)}"), 400)
    assert error["code"] not in {"nul", "surrogate"} or error["attr"] == "where.type"
    body = f'{{"query": "x", "where": {text}}}'.encode()
    assert error_of(api.post("memories/recall/", body), 400)["detail"]


def test_an_expression_of_any_depth_is_refused(api: Api) -> None:
    for depth in range(300, 1_000, 20):
        deep = b'{"not": ' * depth + b'{"type": "x"}' + b"}" * depth
        error_of(api.post("memories/recall/", b'{"query": "x", "where": ' + deep + b"}"), 400)


SAID = [
    {"role": "user", "content": "Do you sell lamps?", "metadata": {"channel": "web"}},
    {"role": "assistant", "content": "Lamps are on shelf 7.", "metadata": {"cost": 3}},
    {"role": "user", "content": "And lamps for the garden?"},
]


def test_conversations_are_filtered_by_the_same_grammar(api: Api) -> None:
    session = opened(api)
    path = f"sessions/{session['session_id']}/messages/"
    api.post(path, {"messages": SAID})
    opened(api, OTHER)

    def numbers(expression: Any) -> list[int]:
        return [row["order_num"] for row in api.walk(f"{path}?limit=1&{query(expression)}")]

    assert numbers({"metadata.cost": {"gt": 2}}) == [2]
    assert numbers({"or": [{"role": "assistant"}, {"metadata.channel": "web"}]}) == [2, 1]
    assert numbers({"content": {"icontains": "GARDEN"}, "order_num": {"gte": 3}}) == [3]
    for name, key in (("sessions/", "session_id"), ("chats/", "object_id")):
        (row,) = api.walk(f"{name}?{query({'whatsapp_chat': CLIENT})}")
        assert row["whatsapp_chat"] == CLIENT
        assert len(api.walk(f"{name}?{query({key: {'ne': row[key]}})}")) == 1
    assert api.walk(f"sessions/?{query({'message_counter': {'gte': 3}})}")[0] == {
        **api.get(f"sessions/{session['session_id']}/").json()
    }


def test_a_recall_searches_the_sources_that_have_all_fields_of_the_condition(api: Api) -> None:
    session_id = opened(api)["session_id"]
    api.post(f"sessions/{session_id}/messages/", {"messages": SAID})
    stored(api, "Lamps cost 30", whatsapp_chat=CLIENT, tags=["vip"], metadata={"cost": 3})

    def sources(expression: Any) -> list[str]:
        body = {"query": "lamps", "whatsapp_chat": CLIENT, "min_similarity": 0}
        found = api.post("memories/recall/", {**body, "where": expression}).json()
        return sorted(row["source"] for row in found["results"])

    assert sources({"metadata.cost": 3}) == ["memory", "message"]
    assert sources({"created_at": {"lt": "2020-01-01"}}) == []
    assert sources({"tags": "vip"}) == ["memory"]
    assert sources({"role": "assistant"}) == ["message"]
    refused = api.post("memories/recall/", {"query": "x", "where": {"tags": "x", "role": "user"}})
    assert error_of(refused, 400)["code"] == "unknown_field"


def test_a_recall_finds_all_that_match_among_many_that_are_more_relevant(api: Api) -> None:
    many = [{"content": f"The lamp number {n} is in stock", "supersede": False} for n in range(300)]
    api.post("memories/batch/", {"memories": many})
    for n in range(3):
        stored(api, f"Lamps of the garden, row {n}", metadata={"row": n}, supersede=False)
    Memory.objects.filter(metadata__has_key="row").update(created_at="2020-01-01T00:00:00Z")
    where = {"metadata.row": {"gte": 0}}
    body = {"query": "is the lamp in stock?", "min_similarity": 0, "top_k": 3, "where": where}
    found = api.post("memories/recall/", body).json()["results"]
    assert len(found) == 3
    assert all("row" in row["metadata"] for row in found)


def test_a_bound_token_learns_nothing_of_where_a_public_memory_came_from(api: Api) -> None:
    for chat in (CLIENT, OTHER):
        stored(api, f"We open at 9, says {chat}", whatsapp_chat=chat, visibility="public")
    bound = api_with(chat_ids=token_chats([CLIENT]))
    body = {"query": "When do you open?", "min_similarity": 0}
    for name in ("whatsapp_chat", "source", "source_message_id"):
        refused = bound.post("memories/recall/", {**body, "where": {name: {"exists": True}}})
        assert error_of(refused, 400)["code"] == "unknown_field"
    assert bound.walk(f"memories/?{query({'whatsapp_chat': OTHER})}") == []
    assert len(bound.walk(f"memories/?{query({'not': {'whatsapp_chat': OTHER}})}")) == 1


@pytest.mark.parametrize("condition", [{"metadata.n": 19_999}, {"metadata.l": {"contains": ["x"]}}])
def test_an_index_finds_what_equals_or_contains(api: Api, condition: Any) -> None:
    rows = [{"content": "x", "metadata": {"n": 19_999, "l": ["x"]}}]
    api.post("memories/batch/", {"memories": rows})
    with connection.cursor() as cursor:
        cursor.execute(MANY)
        cursor.execute("ANALYZE memories_app_memory")
    with CaptureQueriesContext(connection) as asked:
        assert len(b"".join(api.get(f"memories/export/?{query(condition)}")).splitlines()) == 1
    assert rows_read(asked) < 100


MANY = """
INSERT INTO memories_app_memory (memory_id, content, content_hash, type, category, tags, visibility,
    source, metadata, status, pinned, said_at, told_count, last_told_at, created_at, updated_at,
    fact_key, likeness, terms, term_count)
SELECT gen_random_uuid(), 'memory ' || number, md5(number::text), 'fact', '', '{}', 'owner', 'api',
    jsonb_build_object('n', number, 'l', '["y"]'::jsonb), 'active', false, now(), 1, now(), now(),
    now(), md5(number::text), '{}', '{}', 0
FROM generate_series(1, 10000) AS number
"""
