"""Recall over HTTP: what fits, and who may see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from django.test import override_settings

from sessions_app.models import Chat
from sessions_app.tasks import embed_memories
from tests.api.calling import Api, api_with, error_of
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT

pytestmark = pytest.mark.django_db
FACT = "TestCorp owes me ₪5000"


def remember(api: Api, content: str, **fields: Any) -> str:
    answer = api.post("memories/", {"content": content, **fields})
    assert answer.status_code == 201, answer.content
    return str(answer.json()["memory_id"])


def recalled(api: Api, query: str, **fields: Any) -> list[dict[str, Any]]:
    answer = api.post("memories/recall/", {"query": query, **fields})
    assert answer.status_code == 200, answer.content
    assert answer.json()["degraded"] is False
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def contents(found: list[dict[str, Any]]) -> list[str]:
    return [each["content"] for each in found]


@pytest.fixture
def said(api: Api) -> str:
    """A client asked something once; the session's id."""
    session = api.post("sessions/", {"whatsapp_chat": CLIENT}).json()["session_id"]
    body = [
        {"role": "user", "content": "When is the plumber coming to TestCorp?"},
        {"role": "assistant", "content": "The plumber comes on Tuesday.", "metadata": {"n": 1}},
    ]
    answer = api.post(f"sessions/{session}/messages/", {"messages": body})
    assert answer.status_code == 201, answer.content
    return str(session)


def test_a_recall_says_that_vectors_wait(api: Api) -> None:
    batch = [
        {"content": f"Room {number} has a bath", "whatsapp_chat": CLIENT} for number in range(9)
    ]
    assert api.post("memories/batch/", {"memories": batch}).status_code == 201
    question = {"query": "Where can I wash?"}

    def degraded(**fields: Any) -> bool:
        answer = api.post("memories/recall/", {**question, **fields}).json()
        return bool(answer["degraded"])

    assert degraded()
    assert degraded(whatsapp_chat=CLIENT)
    # What this person can't see isn't told, not even that it waits.
    assert not degraded(whatsapp_chat=OTHER_CLIENT)
    assert not degraded(whatsapp_chat=CLIENT, sources=["messages"])
    assert not degraded(tags=["other"])
    embed_memories()
    assert not degraded()


def test_a_memory_is_recalled_with_all_that_belongs_to_it(api: Api) -> None:
    key = remember(
        api, FACT, type="debt", tags=["t"], category="c", metadata={"client": "TestCorp"}
    )
    (hit,) = recalled(api, "How much does TestCorp owe me?")
    assert hit["memory_id"] == key
    assert hit["source"] == "memory"
    assert hit["content"] == FACT
    assert 0.7 <= hit["score"] <= 1
    assert -1 <= hit["similarity"] <= 1
    assert (hit["type"], hit["tags"], hit["category"]) == ("debt", ["t"], "c")
    assert hit["metadata"] == {"client": "TestCorp"}
    assert hit["created_at"].endswith("Z")
    assert recalled(api, "What is the weather on Mars?") == []


def test_filters_narrow_what_is_recalled(api: Api) -> None:
    for n in range(12):
        remember(api, f"TestCorp invoice INV-{n:03} is {n} shekels", tags=[f"t{n}", "all"],
                 type="odd" if n % 2 else "even", metadata={"n": n, "m": {"deep": n}})  # fmt: skip
    loose: dict[str, Any] = {"query": "TestCorp invoice", "min_similarity": 0}

    def numbers(**fields: Any) -> set[int]:
        found = recalled(api, **{**loose, "top_k": 100, **fields})
        return {each["metadata"]["n"] for each in found}

    assert numbers() == set(range(12))
    assert numbers(type="odd") == {1, 3, 5, 7, 9, 11}
    assert numbers(tags=["all", "t3"]) == {3}
    assert numbers(metadata={"m": {"deep": 4}}) == {4}
    assert numbers(metadata={"n": 4}, type="odd") == set()
    assert len(recalled(api, **loose, top_k=2)) == 2
    assert len(recalled(api, **loose)) == 5


def test_with_a_chat_its_messages_are_recalled_too(api: Api, said: str) -> None:
    found = recalled(api, "When does the plumber come?", whatsapp_chat=CLIENT, min_similarity=0)
    first = next(each for each in found if "Tuesday" in each["content"])
    assert first["source"] == "message"
    assert (first["session_id"], first["order_num"], first["role"]) == (said, 2, "assistant")
    assert first["metadata"] == {"n": 1}
    assert first["message_id"]
    loose = {"whatsapp_chat": CLIENT, "min_similarity": 0}
    assert recalled(api, "plumber", sources=["memories"], **loose) == []
    assert recalled(api, "plumber", type="fact", **loose) == []
    assert contents(recalled(api, "plumber", metadata={"n": 1}, **loose)) == [
        "The plumber comes on Tuesday."
    ]
    assert recalled(api, "plumber", min_similarity=0) == []
    assert recalled(api, "plumber", whatsapp_chat=OTHER_CLIENT, min_similarity=0) == []


@override_settings(GODFATHER_PHONE=frozenset({GODFATHER}))
def test_who_writes_in_a_chat_decides_what_is_recalled_there(api: Api, said: str) -> None:
    remember(api, "The plumber costs 1 (owner)")
    remember(api, "The plumber costs 2 (client)", whatsapp_chat=CLIENT)
    remember(api, "The plumber costs 3 (other)", whatsapp_chat=OTHER_CLIENT)
    remember(api, "The plumber costs 4 (public)", visibility="public")

    def seen(**fields: Any) -> set[str]:
        found = recalled(api, "What does the plumber cost?", min_similarity=0, top_k=50,
                         sources=["memories"], **fields)  # fmt: skip
        return {each["content"][-9:].strip("()").split("(")[-1] for each in found}

    everything = {"owner", "client", "other", "public"}
    assert seen() == everything
    assert seen(whatsapp_chat=CLIENT) == {"client", "public"}
    assert seen(whatsapp_chat=OTHER_CLIENT) == {"other", "public"}
    assert seen(whatsapp_chat="15550100999@c.us") == {"public"}
    assert seen(whatsapp_chat=GODFATHER) == everything
    assert not Chat.objects.filter(whatsapp_chat__in=["15550100999@c.us", GODFATHER]).exists()


@override_settings(GODFATHER_PHONE=frozenset({GODFATHER}))
def test_a_bound_token_recalls_only_what_is_public_or_of_its_chats(api: Api) -> None:
    remember(api, "Tea costs 1", visibility="owner", whatsapp_chat=CLIENT)
    remember(api, "Tea costs 2 for me", whatsapp_chat=CLIENT)
    remember(api, "Tea costs 3 for them", whatsapp_chat=OTHER_CLIENT)
    remember(api, "Tea costs 4 for all", visibility="public", whatsapp_chat=OTHER_CLIENT)
    remember(api, "Tea costs 5 for the boss", visibility="owner")
    remember(api, "Tea costs 6 said the boss", whatsapp_chat=GODFATHER)
    mine, boss = (Chat.objects.get(whatsapp_chat=name).pk for name in (CLIENT, GODFATHER))
    bound = api_with(chat_ids=[mine])
    wide: dict[str, Any] = {"min_similarity": 0, "top_k": 50}
    for fields in ({}, {"whatsapp_chat": CLIENT}):
        found = recalled(bound, "What does tea cost?", **wide, **fields)
        assert sorted(contents(found)) == ["Tea costs 2 for me", "Tea costs 4 for all"]
        # Nobody learns from whom the public one came.
        assert {each["whatsapp_chat"] for each in found} == {CLIENT, None}
    for name in (OTHER_CLIENT, GODFATHER, "15550100777@c.us"):
        error_of(bound.post("memories/recall/", {"query": "tea", "whatsapp_chat": name}), 404)
    theirs = api_with(chat_ids=[boss])
    found = recalled(theirs, "What does tea cost?", **wide, whatsapp_chat=GODFATHER)
    assert sorted(contents(found)) == ["Tea costs 4 for all", "Tea costs 6 said the boss"]


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": 5}, "query"),
        ({"query": "x" * 8193}, "query"),
        ({"query": "a\x00"}, "query"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "top_k": -1}, "top_k"),
        ({"query": "x", "top_k": 10**30}, "top_k"),
        ({"query": "x", "top_k": "5"}, "top_k"),
        ({"query": "x", "top_k": True}, "top_k"),
        ({"query": "x", "min_similarity": 1.1}, "min_similarity"),
        ({"query": "x", "min_similarity": -0.1}, "min_similarity"),
        ({"query": "x", "min_similarity": "nan"}, "min_similarity"),
        ({"query": "x", "sources": []}, "sources"),
        ({"query": "x", "sources": ["cards"]}, "sources.0"),
        ({"query": "x", "sources": ["messages"]}, "whatsapp_chat"),
        ({"query": "x", "tags": "a"}, "tags"),
        ({"query": "x", "metadata": 5}, "metadata"),
        ({"query": "x", "whatsapp_chat": 5}, "whatsapp_chat"),
        ({"query": "x", "k": 5}, "k"),
    ],
)
def test_a_question_of_no_sense_is_refused(api: Api, body: dict[str, Any], attr: str) -> None:
    assert error_of(api.post("memories/recall/", body), 400)["attr"] == attr


@pytest.mark.parametrize(
    ("metadata", "operator"),
    [
        ({"sku": {"gt": 7}}, "gt"),
        ({"sku": {"$in": [7]}}, "$in"),
        ({"AND": [{"sku": 7}]}, "AND"),
        ({"a": [{"b": {"contains": "x"}}]}, "contains"),
    ],
)
def test_operators_are_no_names_of_fields(
    api: Api, metadata: dict[str, Any], operator: str
) -> None:
    answer = api.post("memories/recall/", {"query": "a", "metadata": metadata})
    error = error_of(answer, 400)
    assert error["attr"] == "metadata"
    assert operator in error["detail"]


DANA = "Dana wants net 30"


def with_tag(api: Api) -> None:
    remember(api, DANA, tags=["Payments"])


def tagged_later(api: Api) -> None:
    key = remember(api, DANA)
    assert api.call("PATCH", f"memories/{key}/", {"tags": ["Payments"]}).status_code == 200


def tagged_by_a_mention(api: Api) -> None:
    remember(api, DANA, tags=["clients"])
    again = api.post("memories/", {"content": DANA, "tags": ["Payments"]})
    assert (again.status_code, again.json()["merged"]) == (200, ["tags"])


def rewritten(api: Api) -> None:
    key = remember(api, "Dana wants cash", tags=["Payments"])
    assert api.call("PATCH", f"memories/{key}/", {"content": DANA}).status_code == 200


def imported(api: Api) -> None:
    line = json.dumps({"content": DANA, "visibility": "owner", "tags": ["Payments"]}).encode()
    assert api.call("POST", "memories/import/", line).json()["created"] == 1


@pytest.mark.parametrize(
    "store", [with_tag, tagged_later, tagged_by_a_mention, rewritten, imported]
)
def test_a_memory_is_found_by_the_words_of_its_tags(store: Callable[[Api], None], api: Api) -> None:
    remember(api, "The plumber comes on Tuesday")
    remember(api, "Oranges are in season", tags=["fruit"])
    store(api)
    assert contents(recalled(api, "payment")) == [DANA]
    assert contents(recalled(api, "What payments are there?")) == [DANA]
    assert [row["content"] for row in api.walk("memories/?text=payment")] == [DANA]
    assert contents(recalled(api, "fruit")) == ["Oranges are in season"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("good one 41", ["This is a good one: row 41"]),
        ("good", ["This is a good one: row 41"]),
        ("ROW 41", ["This is a good one: row 41", "Rows 41 and 42"]),
        ("not eat nuts", ["I don't mind, but do not eat nuts"]),
        ("no como nueces", ["Yo no como nueces"]),
        ("לא אוכל אגוזים", ["אני לא אוכל אגוזים"]),
        ("אוכל אגוזים", ["אני אוכל אגוזים", "אני לא אוכל אגוזים"]),
        ("не ем орехи", ["Я не ем орехи"]),
        ("good bananas", []),
        ("!?", []),
    ],
)
def test_a_list_by_text_has_each_of_its_words(text: str, found: list[str], api: Api) -> None:
    for content in (
        "This is a good one: row 41",
        "Rows 41 and 42",
        "I don't mind, but do not eat nuts",
        "I eat nuts",
        "Yo no como nueces",
        "Yo como nueces",
        "אני לא אוכל אגוזים",
        "אני אוכל אגוזים",
        "Я не ем орехи",
        "Я ем орехи",
    ):
        remember(api, content)
    # The newer of two opposites takes the place of the older one.
    address = f"memories/?text={quote(text)}&status=active&status=superseded"
    listed = [row["content"] for row in api.walk(address)]
    assert sorted(listed) == sorted(found)


@pytest.mark.django_db(transaction=True)
def test_a_tag_that_is_taken_away_finds_nothing_any_more(api: Api) -> None:
    """Also where the process holds the scope in memory."""
    key = remember(api, DANA)
    assert recalled(api, "payment") == []
    for tags, found in (
        (["Payments"], [DANA]),
        (["clients"], []),
        (["payments"], [DANA]),
        ([], []),
    ):
        assert api.call("PATCH", f"memories/{key}/", {"tags": tags}).status_code == 200
        assert contents(recalled(api, "payment")) == found


def test_a_tag_that_the_text_says_already_changes_no_score(api: Api) -> None:
    remember(api, "Payment of TestCorp is due on Monday")
    (plain,) = recalled(api, "When is the payment of TestCorp due?")
    path = f"memories/{plain['memory_id']}/"
    assert api.call("PATCH", path, {"tags": ["payment", "TestCorp"]}).status_code == 200
    (tagged,) = recalled(api, "When is the payment of TestCorp due?")
    assert tagged["score"] == plain["score"]
