"""Memories over HTTP: stored, listed, changed, forgotten."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.test import override_settings
from django.utils import timezone

from memories_app.models import Memory, MemoryRevision, Visibility
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat, ForgetReceipt
from tests.api.calling import Api, api_with, error_of
from tests.world import GODFATHER

pytestmark = pytest.mark.django_db
CHAT, OTHER = "15550100123@c.us", "15550100456@c.us"
CONTENT = "  TestCorp owes me ₪5000 \n"


def stored(api: Api, content: str = CONTENT, **fields: Any) -> dict[str, Any]:
    answer = api.post("memories/", {"content": content, **fields})
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_a_memory_is_stored_byte_for_byte_and_read_again(api: Api) -> None:
    made = stored(api, type="debt", category="money", tags=["a"], metadata={"n": [1, {"x": None}]})
    assert made["content"] == CONTENT
    assert made["source"] == "api"
    assert made["created_at"].endswith("Z")
    read = api.get(f"memories/{made['memory_id']}/")
    of_the_write = {"outcome", "superseded", "merged", "not_applied"}
    memory = {name: value for name, value in made.items() if name not in of_the_write}
    assert read.json() == {**memory, "revisions": []}
    assert Memory.objects.get().content == CONTENT
    assert AuditEvent.objects.filter(action="memory.remember", actor_kind="api").count() == 1


def test_without_visibility_it_is_the_chats_where_one_is_named_else_the_owners(api: Api) -> None:
    assert stored(api)["visibility"] == "owner"
    made = stored(api, whatsapp_chat=CHAT)
    assert made["visibility"] == "chat"
    assert made["whatsapp_chat"] == CHAT
    assert stored(api, visibility="public")["visibility"] == "public"
    assert (
        stored(api, "About TestCorp", visibility="owner", whatsapp_chat=CHAT)["whatsapp_chat"]
        == CHAT
    )


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": "   "}, "content"),
        ({"content": 5}, "content"),
        ({"content": "x" * 8193}, "content"),
        ({"content": "a\x00b"}, "content"),
        ({"content": "a\ud800b"}, "content"),
        ({"content": "x", "type": ""}, "type"),
        ({"content": "x", "type": "t" * 65}, "type"),
        ({"content": "x", "category": "c" * 65}, "category"),
        ({"content": "x", "tags": ["t" * 65]}, "tags.0"),
        ({"content": "x", "tags": "a"}, "tags"),
        ({"content": "x", "tags": ["a", ""]}, "tags.1"),
        ({"content": "x", "tags": ["t"] * 21}, "tags"),
        ({"content": "x", "metadata": []}, "metadata"),
        ({"content": "x", "metadata": {"big": "y" * 20_000}}, "metadata"),
        ({"content": "x", "visibility": "all"}, "visibility"),
        ({"content": "x", "visibility": "chat"}, "visibility"),
        ({"content": "x", "whatsapp_chat": "no body"}, "whatsapp_chat"),
        ({"content": "x", "pinned": "yes"}, "pinned"),
        ({"content": "x", "expires_at": "soon"}, "expires_at"),
        ({"content": "x", "expires_at": "9999-12-31T23:59:59Z"}, "expires_at"),
        ({"content": "x", "colour": "red"}, "colour"),
        ([], "non_field_errors"),
    ],
)
def test_what_is_wrong_is_told_by_place_and_not_stored(api: Api, body: Any, attr: str) -> None:
    error = error_of(api.call("POST", "memories/", body), 400)
    assert error["attr"] in (attr, None) if attr == "non_field_errors" else error["attr"] == attr
    assert not Memory.objects.exists()
    assert not Chat.objects.exists()


def test_lists_are_filtered(api: Api) -> None:
    stored(api, "We open at 9", visibility="public", type="hours", tags=["a", "b"])
    stored(api, "Dana likes tea", whatsapp_chat=CHAT, category="taste", tags=["b"], pinned=True)
    ended = stored(api, "Ended", expires_at="2999-01-01T00:00:00Z")
    Memory.objects.filter(pk=ended["memory_id"]).update(expires_at="2020-01-01T00:00:00Z")

    def found(query: str) -> list[str]:
        return [each["content"] for each in api.walk(f"memories/?{query}")]

    both = ["Dana likes tea", "We open at 9"]
    assert found("") == both
    assert found("type=hours") == ["We open at 9"]
    assert found("category=taste") == ["Dana likes tea"]
    assert found("tags=b") == both
    assert found("tags=b&tags=a") == ["We open at 9"]
    assert found("visibility=public") == ["We open at 9"]
    assert found(f"whatsapp_chat={CHAT}") == ["Dana likes tea"]
    assert found(f"whatsapp_chat={OTHER}") == []
    assert found("pinned=true") == ["Dana likes tea"]
    assert found("source=api") == both
    assert found("text=opening") == ["We open at 9"] or found("text=open") == ["We open at 9"]
    assert found("since=2999-01-01T00:00:00Z") == []
    assert found("status=active") == ["Ended", *both]
    assert found("status=superseded") == []


def test_a_filter_takes_several_values(api: Api) -> None:
    stored(api, "We open at 9", type="hours")
    stored(api, "Dana likes tea", type="taste")
    stored(api, "The bus leaves at 8")
    old = stored(api, "The bus is blue")
    Memory.objects.filter(pk=old["memory_id"]).update(status="proposed")

    def found(query: str) -> set[str]:
        return {each["content"] for each in api.walk(f"memories/?{query}")}

    assert found("type=hours&type=taste") == {"We open at 9", "Dana likes tea"}
    assert found("type=fact&status=active&status=proposed") == {
        "The bus leaves at 8",
        "The bus is blue",
    }
    error = error_of(api.get("memories/?status=active&status=gone"), 400)
    assert error["attr"] == "status"


def test_memories_are_found_by_their_metadata(api: Api) -> None:
    stored(api, "Blue bottle", metadata={"sku": 7, "at": {"shelf": "A"}})
    stored(api, "Red bottle", metadata={"sku": "7", "at": {"shelf": "B"}})
    stored(api, "Green bottle")

    def found(metadata: str) -> list[str]:
        return [each["content"] for each in api.walk(f"memories/?metadata={quote(metadata)}")]

    assert found('{"sku": 7}') == ["Blue bottle"]
    assert found('{"at": {"shelf": "B"}}') == ["Red bottle"]
    assert found('{"sku": 8}') == []
    assert len(found("{}")) == 3


@pytest.mark.parametrize(
    "metadata",
    [
        *("x", "[1]", "7", "null", '"sku"', '{"sku": NaN}', '{"sku": 1e999}', "[" * 3_000),
        *('{"sku": {"gt": 7}}', '{"sku": 7, "sku": 8}', r'{"a": "\u0000"}', r'{"a": "\ud800"}'),
        '{"a": ' * 200 + "1" + "}" * 200,
    ],
)
def test_metadata_that_makes_no_sense_is_refused_by_the_list(api: Api, metadata: str) -> None:
    error = error_of(api.get(f"memories/?metadata={quote(metadata)}"), 400)
    assert error["attr"] == "metadata"


def test_pages_hold_everything_once(api: Api) -> None:
    facts = [{"content": f"Fact number {n}", "whatsapp_chat": f"155501001{n:02}@c.us"}
             for n in range(25)]  # fmt: skip
    assert api.post("memories/batch/", {"memories": facts}).status_code == 201
    seen = [each["content"] for each in api.walk("memories/?limit=7")]
    assert sorted(seen) == sorted(each["content"] for each in facts)


def test_a_batch_answers_in_the_order_given(api: Api) -> None:
    known = stored(api, "We open at 9")
    facts = [{"content": "A likes tea"}, {"content": "We open at 9"}, {"content": "A likes tea"}]
    answer = api.post("memories/batch/", {"memories": facts})
    assert answer.status_code == 201
    told = answer.json()["memories"]
    assert [each["status"] for each in told] == ["created", "duplicate", "duplicate"]
    assert told[1]["memory_id"] == known["memory_id"]
    assert told[2]["memory_id"] == told[0]["memory_id"]
    assert api.post("memories/batch/", {"memories": facts}).status_code == 200


def test_a_batch_is_stored_as_a_whole_or_not_at_all(api: Api) -> None:
    facts = [{"content": "fine", "whatsapp_chat": CHAT}, {"content": " "}]
    error = error_of(api.post("memories/batch/", {"memories": facts}), 400)
    assert error["attr"] == "memories.1.content"
    assert not Memory.objects.exists()
    assert not Chat.objects.exists()
    big = [{"content": f"Fact {n}"} for n in range(1001)]
    assert error_of(api.post("memories/batch/", {"memories": big}), 400)["attr"] == "memories"
    error_of(api.post("memories/batch/", {"memories": []}), 400)
    error_of(api.post("memories/batch/", {"memories": "x"}), 400)


def test_a_change_keeps_what_it_said_before(api: Api) -> None:
    made = stored(api, whatsapp_chat=CHAT)
    path = f"memories/{made['memory_id']}/"
    body = {"content": "TestCorp owes me nothing", "tags": ["x"], "pinned": True,
            "metadata": {"a": 1}, "expires_at": "2999-01-01T00:00:00+02:00"}  # fmt: skip
    answer = api.call("PATCH", path, body)
    assert answer.status_code == 200, answer.content
    changed = answer.json()
    assert changed["content"] == body["content"]
    assert changed["expires_at"] == "2998-12-31T22:00:00Z"
    assert (changed["pinned"], changed["metadata"]) == (True, {"a": 1})
    assert [each["content"] for each in changed["revisions"]] == [CONTENT]
    assert changed["revisions"][0]["changed_by_kind"] == "api"
    assert api.call("PATCH", path, {}).json() == changed
    assert MemoryRevision.objects.count() == 1
    public = api.call("PATCH", path, {"visibility": "public"}).json()
    assert public["visibility"] == "public"
    assert api.call("PATCH", path, {"expires_at": None}).json()["expires_at"] is None


def test_only_the_version_that_was_read_is_changed_with_if_match(api: Api) -> None:
    path = f"memories/{stored(api)['memory_id']}/"
    read = api.get(path)
    etag = read["ETag"]
    assert api.get(path, If_None_Match=etag).status_code == 304
    first = api.call("PATCH", path, {"category": "a"}, If_Match=etag)
    assert first.status_code == 200
    assert first["ETag"] != etag
    error_of(api.call("PATCH", path, {"category": "b"}, If_Match=etag), 412)
    assert Memory.objects.get().category == "a"
    assert api.call("PATCH", path, {"category": "b"}, If_Match=first["ETag"]).status_code == 200
    assert api.get(path, If_None_Match=etag).status_code == 200


def test_changes_that_cannot_be_are_refused(api: Api) -> None:
    one, other = stored(api, "We open at 9"), stored(api, "Dana likes tea")
    path = f"memories/{one['memory_id']}/"
    error = error_of(api.call("PATCH", path, {"content": "Dana likes tea"}), 409)
    assert error["code"] == "duplicate"
    assert other["memory_id"] in error["detail"]
    assert error_of(api.call("PATCH", path, {"content": " "}), 400)["attr"] == "content"
    assert error_of(api.call("PATCH", path, {"visibility": "chat"}), 400)["attr"] == "visibility"
    assert (
        error_of(api.call("PATCH", path, {"whatsapp_chat": CHAT}), 400)["attr"] == "whatsapp_chat"
    )
    error_of(api.call("PATCH", f"memories/{uuid.uuid4()}/", {"content": "x"}), 404)
    newer = stored(api, "We open at 10")
    error_of(api.call("PATCH", path, {"content": "Other"}), 409)
    assert api.get(path).json()["superseded_by"] == newer["memory_id"]
    # Half of a change isn't carried out.
    both = {"category": "new", "content": "Dana likes tea"}
    error_of(api.call("PATCH", f"memories/{newer['memory_id']}/", both), 409)
    assert Memory.objects.get(pk=newer["memory_id"]).category == ""


def test_where_memory_is_off_nothing_is_stored_and_reading_goes_on(api: Api) -> None:
    path = f"memories/{stored(api, 'Known')['memory_id']}/"
    body = {"content": "x", "whatsapp_chat": CHAT}
    with override_settings(ENABLE_MEMORY_SYSTEM=False):
        error_of(api.post("memories/", body), 403)
        assert api.get(path).status_code == 200
        Chat.objects.create(whatsapp_chat=CHAT, memory_enabled=True)
        assert api.post("memories/", body).status_code == 201
        assert api.delete(path).status_code == 200
    Chat.objects.update(memory_enabled=False)
    error_of(api.post("memories/", {**body, "content": "z"}), 403)
    with override_settings(LONGTERM_ENABLED=False):
        error = error_of(api.post("memories/", {"content": "z"}), 403)
        assert (error["code"], "LONGTERM_ENABLED" in error["detail"]) == ("memory_disabled", True)
        error_of(api.post("memories/recall/", {"query": "x"}), 403)


def test_a_bound_token_reaches_the_memories_of_its_chats_alone(api: Api) -> None:
    mine = stored(api, "Mine is tea", whatsapp_chat=CHAT)
    others = [
        stored(api, "Theirs is coffee", whatsapp_chat=OTHER),
        stored(api, "The owner's"),
        stored(api, "For all", visibility="public"),
        stored(api, "A slow payer", visibility="owner", whatsapp_chat=CHAT),
    ]
    bound = api_with(chat_ids=[Chat.objects.get(whatsapp_chat=CHAT).pk])
    for query in ("", f"?whatsapp_chat={CHAT}"):
        listed = [each["memory_id"] for each in bound.walk(f"memories/{query}")]
        assert listed == [mine["memory_id"]]
    (exported,) = b"".join(bound.get("memories/export/")).splitlines()
    assert b"Mine is tea" in exported
    for other in others:
        path = f"memories/{other['memory_id']}/"
        for method, change in (("GET", None), ("PATCH", {"pinned": True}), ("DELETE", None)):
            error_of(bound.call(method, path, change), 404)
    own = f"memories/{mine['memory_id']}/"
    assert bound.call("PATCH", own, {"content": "Mine is water"}).status_code == 200
    for visibility in ("public", "owner"):
        error_of(bound.call("PATCH", own, {"visibility": visibility}), 403)
        body = {"content": "x", "whatsapp_chat": CHAT, "visibility": visibility}
        error_of(bound.post("memories/", body), 403)
    unnamed = bound.post("memories/", {"content": "x"}).json()
    assert (unnamed["whatsapp_chat"], unnamed["visibility"]) == (CHAT, "chat")
    batch = [{"content": "x", "whatsapp_chat": CHAT}, {"content": "y", "whatsapp_chat": OTHER}]
    error_of(bound.post("memories/batch/", {"memories": batch}), 404)
    assert bound.post("memories/", {"content": "new", "whatsapp_chat": CHAT}).status_code == 201
    assert bound.delete(own).status_code == 200
    assert Memory.objects.filter(visibility=Visibility.CHAT).count() == 3
    assert not Memory.objects.filter(pinned=True).exists()
    assert ForgetReceipt.objects.count() == 1
    # To say what the owner knows neither shows nor changes that.
    same = bound.post("memories/", {"content": "A slow payer", "whatsapp_chat": CHAT})
    assert (same.status_code, same.json()["memory_id"] != others[-1]["memory_id"]) == (201, True)


def test_a_token_of_the_owners_chat_reaches_no_memory_of_the_owner(api: Api, settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    note = stored(api, "A slow payer", visibility="owner", whatsapp_chat=GODFATHER)
    bound = api_with(chat_ids=[Chat.objects.get(whatsapp_chat=GODFATHER).pk])
    error_of(bound.get(f"memories/{note['memory_id']}/"), 404)
    question = {"query": "slow payer", "whatsapp_chat": GODFATHER, "min_similarity": 0}
    assert bound.post("memories/recall/", question).json()["results"] == []
    for path in ("memories/", f"memories/?whatsapp_chat={GODFATHER}"):
        assert bound.walk(path) == []
    assert b"".join(bound.get("memories/export/")) == b""


@pytest.mark.parametrize("depth", [25, 200, 900, 990, 100_000])
def test_metadata_that_is_nested_too_deeply_is_refused_not_dropped(api: Api, depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    raw = b'{"content": "x", "metadata": {"a": ' + deep + b"}}"
    error_of(api.call("POST", "memories/", raw, Idempotency_Key="k"), 400)
    error_of(api.call("POST", "memories/", raw), 400)
    raw = b'{"query": "x", "metadata": {"a": ' + deep + b"}}"
    error_of(api.call("POST", "memories/recall/", raw), 400)
    assert not Memory.objects.exists()


def test_metadata_comes_back_as_it_was_given(api: Api) -> None:
    metadata = {"deep": [[[[{"a": [None, True, 1, 1.5, 10**30, "ü"]}]]]], "": "", "a.b": {}}
    made = stored(api, metadata=metadata)
    assert made["metadata"] == metadata
    assert api.get(f"memories/{made['memory_id']}/").json()["metadata"] == metadata


# What a write says that it did.


NONE: dict[str, list[str]] = {"superseded": [], "merged": [], "not_applied": []}


def remember(api: Api, status: int, **body: Any) -> dict[str, Any]:
    answer = api.post("memories/", body)
    assert answer.status_code == status, answer.content
    found: dict[str, Any] = answer.json()
    return found


def done(stored: dict[str, Any]) -> dict[str, Any]:
    return {name: stored[name] for name in NONE}


def test_a_new_memory_says_so_and_where_it_is(api: Api) -> None:
    answer = api.post("memories/", {"content": "We open at 9"})
    assert answer.status_code == 201
    stored = answer.json()
    assert (stored["outcome"], stored["status"], done(stored)) == ("created", "active", NONE)
    assert api.get(answer.headers["Location"]).json()["memory_id"] == stored["memory_id"]


def test_what_is_known_gets_new_tags_and_metadata(api: Api) -> None:
    first = remember(api, 201, content="We open at 9", tags=["a"], metadata={"v": 1, "x": 1})
    answer = api.post(
        "memories/", {"content": "We open at 9", "tags": ["b", "a"], "metadata": {"v": 2}}
    )
    assert answer.status_code == 200
    assert "Location" not in answer.headers
    known = answer.json()
    assert known["memory_id"] == first["memory_id"]
    assert known["outcome"] == "duplicate"
    assert done(known) == {**NONE, "merged": ["metadata", "tags"]}
    assert (known["tags"], known["metadata"]) == (["a", "b"], {"v": 2, "x": 1})
    read = api.get(f"memories/{first['memory_id']}/")
    assert (read.json()["tags"], read.json()["metadata"]) == (["a", "b"], {"v": 2, "x": 1})
    assert read.headers["ETag"] == answer.headers["ETag"]
    assert [each["tags"] for each in read.json()["revisions"]] == [["a"]]
    events = AuditEvent.objects.filter(action="memory.update", object_id=first["memory_id"])
    assert [event.details for event in events] == [{"fields": ["metadata", "tags"]}]


def test_metadata_that_differs_only_in_its_type_is_new(api: Api) -> None:
    # In Python true is 1, in JSON it isn't.
    remember(api, 201, content="We open at 9", metadata={"x": 1})
    for value, merged in ((True, ["metadata"]), (True, []), (1, ["metadata"])):
        told = remember(api, 200, content="We open at 9", metadata={"x": value})
        assert (told["metadata"]["x"] is value, told["merged"]) == (True, merged)


def test_what_is_not_applied_to_a_known_memory_is_named(api: Api) -> None:
    remember(api, 201, content="We open at 9", category="hours")
    end = (timezone.now() + timedelta(days=1)).isoformat()
    known = remember(
        api, 200, content="We open at 9", category="times", pinned=True, type="note", expires_at=end
    )
    assert known["not_applied"] == ["type", "category", "pinned", "expires_at"]
    assert (known["category"], known["pinned"], known["expires_at"]) == ("hours", False, None)


def test_more_than_a_memory_may_have_is_refused(api: Api) -> None:
    remember(api, 201, content="We open at 9", tags=[f"a{number}" for number in range(15)])
    body = {"content": "We open at 9", "tags": [f"b{number}" for number in range(15)]}
    assert error_of(api.post("memories/", body), 400)["attr"] == "tags"
    new = {"content": "We close at 5"}
    batch = api.post("memories/batch/", {"memories": [new, body]})
    assert error_of(batch, 400)["attr"] == "memories.1.tags"
    assert Memory.objects.count() == 1
    assert Memory.objects.get().told_count == 1


def test_what_is_superseded_is_named(api: Api) -> None:
    old = remember(api, 201, content="Bus 5 leaves at 8:00")
    new = remember(api, 201, content="Bus 5 leaves at 8:30")
    assert new["superseded"] == [old["memory_id"]]
    assert api.get(f"memories/{old['memory_id']}/").json()["status"] == "superseded"


def test_superseding_can_be_switched_off_for_a_call(api: Api) -> None:
    old = remember(api, 201, content="Bus 5 leaves at 8:00")
    new = remember(api, 201, content="Bus 5 leaves at 8:30", supersede=False)
    assert new["superseded"] == []
    statuses = [each["status"] for each in api.walk("memories/")]
    assert statuses == ["active", "active"]
    assert old["memory_id"] != new["memory_id"]


def test_a_batch_says_it_of_each(api: Api) -> None:
    old = remember(api, 201, content="Bus 5 leaves at 8:00")
    remember(api, 201, content="We open at 9", tags=["a"])
    batch = [
        {"content": "Bus 5 leaves at 8:30"},
        {"content": "We open at 9", "tags": ["b"]},
        {"content": "Dana likes tea", "tags": ["a"]},
        {"content": "Dana likes tea", "tags": ["b"]},
        {"content": "Bus 5 leaves at 9:00", "supersede": False},
    ]
    answer = api.post("memories/batch/", {"memories": batch})
    assert answer.status_code == 201
    found = answer.json()["memories"]
    assert [each["status"] for each in found] == [
        "created", "duplicate", "created", "duplicate", "created",
    ]  # fmt: skip
    assert [each["superseded"] for each in found] == [[old["memory_id"]], [], [], [], []]
    assert [each["merged"] for each in found] == [[], ["tags"], [], ["tags"], []]
    tea = api.get(f"memories/{found[2]['memory_id']}/").json()
    assert tea["tags"] == ["a", "b"]


def test_an_end_that_has_passed_is_refused(api: Api) -> None:
    past = {"content": "We open at 9", "expires_at": "2020-01-01T00:00:00Z"}
    assert error_of(api.post("memories/", past), 400)["attr"] == "expires_at"
    batch = api.post("memories/batch/", {"memories": [past]})
    assert error_of(batch, 400)["attr"] == "memories.0.expires_at"
    assert not Memory.objects.exists()
    stored = remember(api, 201, content="We open at 9")
    path = f"memories/{stored['memory_id']}/"
    change = api.call("PATCH", path, {"expires_at": "2020-01-01T00:00:00Z"})
    assert error_of(change, 400)["attr"] == "expires_at"
