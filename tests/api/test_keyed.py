"""Keyed memories: one of a namespace and key in a scope, whatever others say."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from django.utils import timezone

from memories_app.models import Memory, MemoryRevision
from memories_app.review.consolidate import memories_propose_merges
from memories_app.store.keyed import keyed_expire
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.conversations.chat_queries import token_chats
from sessions_app.models import Chat, ForgetReceipt
from tests.api.calling import Api, api_with, error_of
from tests.threads import at_once

pytestmark = pytest.mark.django_db

ONE, OTHER = "15550100123@c.us", "15550100456@c.us"
# Keys as programs have them.
KEYS = [
    *("a/b c", "x\ny", "k.with/odd: chars\n", "a//b/", "/", "ü שלום 🙂", "100%25", "a?b#c&d=e"),
    *("hello", "Hello", "../up", "k" * 256, "🙂" * 256, "null", " x "),
]


def place(namespace: str, key: str, query: str = "") -> str:
    return f"memories/keyed/{quote(namespace, safe='')}/{quote(key, safe='')}/{query}"


def put(api: Api, namespace: str, key: str, value: Any, query: str = "", **more: Any) -> Any:
    headers = {name: more.pop(name) for name in list(more) if name.startswith("If_")}
    body = {"value": value, **more}
    return api.call("PUT", place(namespace, key, query), body, **headers)


def keys_of(api: Api, path: str) -> list[str]:
    return [each["key"] for each in api.walk(path)]


def recalled(api: Api, query: str, **more: Any) -> list[str]:
    body = {"query": query, "top_k": 100, "min_similarity": 0, "sources": ["memories"], **more}
    return [each["key"] for each in api.post("memories/recall/", body).json()["results"]]


def test_every_key_is_its_own_and_comes_back_as_it_was(api: Api) -> None:
    for key in KEYS:
        made = put(api, "users.42", key, {"v": "same text"})
        assert made.status_code == 201, key
        assert made.json()["key"] == key
        assert api.get(made["Location"]).json() == api.get(place("users.42", key)).json()
    assert sorted(keys_of(api, "memories/keyed/users.42/?limit=4")) == sorted(KEYS)
    for key in KEYS:
        assert api.delete(place("users.42", key)).json()["probe"] == "absent"
        error_of(api.get(place("users.42", key)), 404)
    assert not Memory.objects.exists()


VALUES: list[Any] = [
    {},
    {"v": 1.0, "w": 12345678901234567890, "t": True},
    {"v": 1, "w": 12345678901234567890, "t": 1},
    {"v": {"deep": [1, {"a": None}]}, "n": None, "": "no name"},
    {"v": "x" * 20_000},
    {"v": ["ü🙂"] * 1_000},
    {"v": "x" * (256 * 1024 - 8)},
]


def test_a_value_is_stored_unchanged_and_changes_only_where_it_differs(api: Api) -> None:
    """What was there before stays as a revision."""
    for number, value in enumerate(VALUES):
        changed = put(api, "n", "k", value)
        # To Python true is 1.
        shown = json.dumps(changed.json()["value"], sort_keys=True)
        assert shown == json.dumps(value, sort_keys=True)
        assert put(api, "n", "k", value)["ETag"] == changed["ETag"]
        assert MemoryRevision.objects.count() == number
    memory = api.get(f"memories/{changed.json()['memory_id']}/").json()
    assert [each["value"] for each in memory["revisions"]] == VALUES[:-1]
    assert [event.action for event in AuditEvent.objects.order_by("id")].count("memory.update") == 6


@pytest.mark.parametrize(
    ("namespace", "key", "body", "attr"),
    [
        ("n", "k", {"value": {"v": "x" * (256 * 1024)}}, "value"),
        ("n", "k", {"value": []}, "value"),
        ("n", "k", {}, "value"),
        ("n", "k", {"value": {"v": [[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]}}, "value"),
        ("n", "k", {"value": {}, "index": "v"}, "index"),
        ("n", "k", {"value": {}, "index": True}, "index"),
        ("n", "k", {"value": {}, "text": "a", "index": ["v"]}, "index"),
        ("n", "k", {"value": {}, "ttl_seconds": 0}, "ttl_seconds"),
        ("n", "k", {"value": {}, "ttl_seconds": 9, "expires_at": None}, "expires_at"),
        ("n", "k", {"value": {}, "whatsapp_chat": ONE}, "whatsapp_chat"),
        ("a..b", "k", {"value": {}}, "namespace"),
        (".a", "k", {"value": {}}, "namespace"),
        ("n" * 257, "k", {"value": {}}, "namespace"),
        ("n", "k" * 257, {"value": {}}, "key"),
        ("n", " \n", {"value": {}}, "key"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    api: Api, namespace: str, key: str, body: Any, attr: str
) -> None:
    error = error_of(api.call("PUT", place(namespace, key), body), 400)
    assert (error["attr"] or "").startswith(attr)
    assert not Memory.objects.exists()


def test_equal_and_contrary_values_stay_beside_each_other_and_beside_facts(api: Api) -> None:
    fact = {"content": "v: the bus leaves at 8:00"}
    assert api.post("memories/", fact).json()["outcome"] == "created"
    texts = ["the bus leaves at 8:00", "the bus leaves at 8:00", "The bus leaves at 8:30 now!"]
    for number, text in enumerate(texts):
        assert put(api, "bus", str(number), {"v": text}).status_code == 201
    assert api.post("memories/", fact).json()["outcome"] == "duplicate"
    later = {"content": "v: the bus leaves at 9:00"}
    api.post("memories/", later)
    assert keys_of(api, "memories/keyed/bus/") == ["0", "1", "2"]
    assert sorted(recalled(api, "bus", namespace="bus")) == ["0", "1", "2"]
    assert memories_propose_merges(model_id="none") == 0
    for key in "012":
        shown = api.get(place("bus", key)).json()
        assert (shown["status"], shown["told_count"], shown["valid_until"]) == ("active", 1, None)
    # A forgotten text may be stored again: it is asked for.
    api.delete(place("bus", "0"))
    assert put(api, "bus", "0", {"v": texts[0]}).status_code == 201


def test_scopes_are_apart(api: Api) -> None:
    queries = ["", f"?whatsapp_chat={ONE}", f"?whatsapp_chat={OTHER}", "?visibility=public"]
    for number, query in enumerate(queries):
        assert put(api, "a", "k", {"n": number}, query).status_code == 201
    for number, query in enumerate(queries):
        shown = api.get(place("a", "k", query))
        assert shown.json()["value"] == {"n": number}
        assert len(api.walk(f"memories/keyed/a/{query}")) == 1
    error_of(api.get(place("a", "k", f"?visibility=owner&whatsapp_chat={ONE}")), 400)
    error_of(api.get(place("a", "k", "?visibility=chat")), 400)
    assert api.get(place("a", "k", f"?visibility=chat&whatsapp_chat={ONE}")).status_code == 200
    error_of(api.get(place("a", "k", "?whatsapp_chat=15550100789@c.us")), 404)
    bound = api_with(chat_ids=token_chats([ONE]))
    assert bound.get(place("a", "k")).json()["value"] == {"n": 1}
    for query in queries[2:]:
        error_of(bound.get(place("a", "k", query)), 404)
        error_of(bound.delete(place("a", "k", query)), 404)
    error_of(put(bound, "a", "k", {}, queries[2]), 404)
    error_of(put(bound, "a", "k", {}, queries[3]), 403)
    assert put(bound, "a", "k", {"n": 1}).status_code == 200
    # In another scope the place is taken.
    mine = bound.get(place("a", "k")).json()["memory_id"]
    moved = api.call("PATCH", f"memories/{mine}/", {"visibility": "public"})
    assert error_of(moved, 409)["code"] == "duplicate"
    named = [{"namespace": "a", "key": "k", "whatsapp_chat": chat} for chat in (ONE, OTHER)]
    deleted = bound.post("memories/delete/", {"keyed": named}).json()
    assert deleted["not_found"] == named[1:]
    assert [each["memory_id"] for each in deleted["forgotten"]] == [mine]


def test_namespaces_have_levels(api: Api) -> None:
    names = ["a", "a.b", "a.b.c", "ab", "a_b", "A", "x%2Fy.z", "a b.ü"]
    for name in names:
        put(api, name, "k", {"name": name, "n": len(name)})
    put(api, "a.b", "k2", {"name": "second", "n": 7})
    listed = [each["namespace"] for each in api.walk("memories/keyed/?limit=3")]
    assert sorted(listed) == sorted(names)
    found = [each["namespace"] for each in api.walk("memories/keyed/a/?limit=1")]
    assert found == ["a", "a.b", "a.b", "a.b.c"]
    assert [each["namespace"] for each in api.walk(f"memories/keyed/{quote(names[6])}/")] == [
        names[6]
    ]
    filtered = quote(json.dumps({"n": 7}))
    assert keys_of(api, f"memories/keyed/a/?value={filtered}") == ["k2"]
    assert set(recalled(api, "second name", namespace="a.b")) == {"k", "k2"}
    assert len(api.walk("memories/?keyed=true")) == 9
    assert api.walk("memories/?keyed=false") == []


@pytest.mark.parametrize(
    ("more", "found", "missed"),
    [
        ({}, ["zebra", "giraffe", "lion"], []),
        ({"index": ["title", "body.text"]}, ["zebra", "giraffe"], ["lion"]),
        ({"index": ["$"]}, ["lion"], []),
        ({"index": ["tit", "nothing"]}, [], ["zebra", "lion"]),
        ({"index": False}, [], ["zebra", "giraffe", "lion"]),
        ({"text": "walrus"}, ["walrus"], ["zebra"]),
    ],
)
def test_the_chosen_fields_are_found(
    api: Api, more: Any, found: list[str], missed: list[str]
) -> None:
    value = {"title": "zebra", "body": [{"text": "giraffe"}, {"note": "lion"}]}
    shown = put(api, "n", "k", value, **more).json()
    for word in found + missed:
        assert (word in shown["content"]) is (word in found)
        hits = recalled(api, word, namespace="n")
        assert hits == ([] if not shown["content"] else ["k"])
    listed = f"memories/?text={(found or missed)[0]}"
    assert len(api.walk(listed)) == bool(found)


def test_the_text_stays_that_of_the_value(api: Api) -> None:
    made = put(api, "notes", "one", {"v": "a"}, f"?whatsapp_chat={ONE}").json()
    path = f"memories/{made['memory_id']}/"
    refused = api.call("PATCH", path, {"content": "other"})
    assert error_of(refused, 400)["attr"] == "content"
    assert api.call("PATCH", path, {"tags": ["vip"]}).status_code == 200
    found = api.get(place("notes", "one", f"?whatsapp_chat={ONE}&fields=value,tags"))
    assert found.json() == {"value": {"v": "a"}, "tags": ["vip"]}


def test_preconditions_hold_for_the_version_that_is_there(api: Api) -> None:
    error_of(put(api, "n", "k", {}, If_Match="*"), 412)
    first = put(api, "n", "k", {"n": 1}, If_None_Match="*")
    error_of(put(api, "n", "k", {"n": 2}, If_None_Match="*"), 412)
    second = put(api, "n", "k", {"n": 2}, If_Match=first["ETag"])
    assert second.status_code == 200
    error_of(put(api, "n", "k", {"n": 3}, If_Match=first["ETag"]), 412)
    error_of(api.delete(place("n", "k"), If_Match=first["ETag"]), 412)
    known = api.get(place("n", "k"), If_None_Match=second["ETag"])
    assert known.status_code == 304
    assert api.delete(place("n", "k"), If_Match=second["ETag"]).status_code == 200


def test_what_has_ended_is_absent_and_goes(api: Api) -> None:
    later = timezone.now() + timedelta(seconds=100)
    ends = put(api, "n", "k", {"v": "short lived"}, ttl_seconds=60).json()["expires_at"]
    assert ends < later.isoformat()
    Memory.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    error_of(api.get(place("n", "k")), 404)
    assert api.walk("memories/keyed/n/") == api.walk("memories/keyed/") == []
    again = put(api, "n", "k", {"v": "short lived"}, If_None_Match="*")
    assert (again.status_code, again.json()["expires_at"]) == (201, None)
    put(api, "n", "gone", {"v": "x"}, expires_at=later.isoformat())
    api.post("memories/", {"content": "It ends too", "expires_at": later.isoformat()})
    keyed_expire(later + timedelta(days=1))
    assert {each.key for each in Memory.objects.all()} == {"k", None}


@pytest.mark.django_db(transaction=True)
def test_two_puts_of_a_new_key_make_one_memory(api: Api) -> None:
    for key in "abc":
        puts = [partial(put, api, "race", key, {"n": number}) for number in range(4)]
        answers = at_once(*puts)
        assert sorted(each.status_code for each in answers) == [200, 200, 200, 201]
        only = at_once(*[partial(put, api, "once", key, {}, If_None_Match="*")] * 2)
        assert sorted(each.status_code for each in only) == [201, 412]
    assert Memory.objects.count() == 6


# Memories that aren't deduplicated, and many that are forgotten at once.


def test_without_deduplication_an_equal_text_is_a_memory_of_its_own(api: Api) -> None:
    text = {"content": "The bus leaves at 8:00", "whatsapp_chat": ONE}
    first = api.post("memories/", text).json()
    own = [api.post("memories/", {**text, "dedupe": False}) for _ in range(2)]
    assert [each.status_code for each in own] == [201, 201]
    assert api.post("memories/", text).json()["memory_id"] == first["memory_id"]
    api.post("memories/", {**text, "content": "The bus leaves at 9:00"})
    batch = {"memories": [{**text, "dedupe": False}] * 2}
    stored = api.post("memories/batch/", batch).json()["memories"]
    assert [each["status"] for each in stored] == ["created", "created"]
    active = Memory.objects.filter(status="active", content=text["content"])
    assert active.count() == 4
    # An export brings them back as they were; a line of one's own, too.
    put(api, "n", "k", {"v": text["content"]}, f"?whatsapp_chat={ONE}")
    before = b"".join(api.get("memories/export/"))
    Memory.objects.all().delete()
    lines = before + json.dumps({**text, "dedupe": False}).encode()
    report = api.call("POST", "memories/import/", lines, Content_Type="application/x-ndjson")
    assert report.json() == {"created": 8, "duplicates": 0, "errors": []}
    assert active.count() == 5
    assert b"".join(api.get("memories/export/")).startswith(before)
    assert put(api, "n", "k", {"v": 1}, f"?whatsapp_chat={ONE}").status_code == 200
    again = api.call("POST", "memories/import/", before, Content_Type="application/x-ndjson")
    assert again.json()["created"] == 0


@pytest.mark.parametrize(
    "record",
    [
        {"key": "k"},
        {"key": "k", "namespace": "n"},
        {"key": "k", "namespace": "a/b", "value": {}},
        {"key": "k", "namespace": "n", "value": []},
        {"content": "", "dedupe": "no"},
    ],
)
def test_a_line_of_half_a_keyed_memory_is_refused(api: Api, record: Any) -> None:
    line = json.dumps({"content": "A text", **record}).encode()
    report = api.call("POST", "memories/import/", line, Content_Type="application/x-ndjson").json()
    assert (report["created"], len(report["errors"])) == (0, 1)


def test_many_are_forgotten_with_one_receipt_of_each_chat(api: Api) -> None:
    ids = []
    for chat, count in ((ONE, 3), (OTHER, 2)):
        for number in range(count):
            fact = {"content": f"Fact {number} of {chat}", "whatsapp_chat": chat}
            ids.append(api.post("memories/", fact).json()["memory_id"])
    put(api, "n", "k", {"secret": "four blue horses"})
    missing = "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"
    body = {
        "memory_ids": [*ids, ids[0], missing],
        "keyed": [{"namespace": "n", "key": "k"}, {"namespace": "n", "key": "K"}],
    }
    answer = api.post("memories/delete/", body, Idempotency_Key="one").json()
    lost = [{"memory_id": missing}, {"namespace": "n", "key": "K"}]
    assert answer["not_found"] == lost
    assert len(answer["forgotten"]) == 6
    assert {each["memory_id"] for each in answer["forgotten"]} >= set(ids)
    assert sorted(each["swept"]["memories_app_memory"] for each in answer["receipts"]) == [1, 2, 3]
    assert all(each["probe"] == "absent" for each in answer["receipts"])
    for each in answer["forgotten"]:
        event = AuditEvent.objects.get(action="memory.forget", object_id=each["memory_id"])
        assert event.details["receipt_id"] == each["receipt_id"]
    assert api.post("memories/delete/", body, Idempotency_Key="one").json() == answer
    again = api.post("memories/delete/", body).json()
    assert (again["forgotten"], again["receipts"], len(again["not_found"])) == ([], [], 8)
    assert not Memory.objects.exists()
    of_chat = ForgetReceipt.objects.filter(chat_id=Chat.objects.get(whatsapp_chat=ONE).pk)
    assert of_chat.count() == 1
    bound = api_with(chat_ids=token_chats([ONE]))
    assert len(bound.walk("receipts/")) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"memory_ids": []},
        {"memory_ids": ["no"]},
        {"memory_ids": [7]},
        {"keyed": [{"namespace": "n"}]},
        {"memory_ids": ["0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"] * 1001},
        {"keyed": [{"namespace": "n", "key": "k", "visibility": "owner", "whatsapp_chat": ONE}]},
    ],
)
def test_a_list_to_forget_that_is_wrong_is_refused(api: Api, body: Any) -> None:
    error_of(api.post("memories/delete/", body), 400)
