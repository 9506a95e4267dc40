"""Many memories changed in one call: all of them, or none."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from memories_app.models import Memory, MemoryRevision
from sessions_app.conversations.chat_queries import token_chats
from sessions_app.models import Chat
from tests.api.calling import Api, api_with, error_of
from tests.api.test_memories import stored
from tests.threads import at_once
from tests.world import CLIENT, OTHER_CLIENT

pytestmark = pytest.mark.django_db
PATH = "memories/"


@pytest.fixture
def ids(api: Api) -> list[str]:
    return [stored(api, f"The lamp {n} costs {n}0", pinned=False)["memory_id"] for n in range(4)]


def patch(api: Api, *changes: dict[str, Any], **headers: str) -> Any:
    return api.call("PATCH", PATH, {"memories": list(changes)}, **headers)


def test_a_batch_changes_each_memory_as_it_says_and_answers_in_its_order(
    api: Api, ids: list[str]
) -> None:
    changes: list[dict[str, Any]] = [
        {"content": "The lamp costs 99", "tags": ["a"]},
        {"metadata": {"price": 7}, "pinned": True},
        {"visibility": "public", "expires_at": None, "valid_until": "2030-01-01T00:00:00Z"},
        {},
    ]
    before = {each["memory_id"]: each for each in api.walk(PATH)}
    given = [{"memory_id": key, **each} for key, each in zip(ids, changes, strict=True)]
    rows = patch(api, *given[::-1]).json()["memories"][::-1]
    for key, each, row in zip(ids, changes, rows, strict=True):
        updated = {"updated_at": row["updated_at"]}
        assert row == {**before[key], **each, **updated}
    assert rows[3]["updated_at"] == before[ids[3]]["updated_at"]
    assert MemoryRevision.objects.count() == 3
    found = api.post("memories/recall/", {"query": "What costs 99?"}).json()["results"]
    assert found[0]["memory_id"] == ids[0]


WRONG: list[tuple[dict[str, Any], int, str, str]] = [
    ({"memory_id": str(uuid4()), "tags": []}, 400, "memory_id", "not_found"),
    ({"memory_id": "x"}, 400, "memory_id", "invalid"),
    ({"tags": ["a"]}, 400, "memory_id", "required"),
    ({"content": " "}, 400, "content", "invalid"),
    ({"content": "  \u200b "}, 400, "content", "invalid"),
    ({"tags": ["\u2800"]}, 400, "tags.0", "invalid"),
    ({"content": "x" * 9_000}, 400, "content", "max_length"),
    ({"metadata": {"big": "y" * 20_000}}, 400, "metadata", "invalid"),
    ({"visibility": "chat"}, 400, "visibility", "invalid"),
    ({"nothing": 1}, 400, "nothing", "unknown_field"),
    ({"valid_from": "2030-01-02T00:00:00Z", "valid_until": "2030-01-01T00:00:00Z"}, 400,
     "valid_until", "invalid"),
    ({"content": "the lamp 3 costs 30."}, 409, "content", "duplicate"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "status", "field", "code"), WRONG)
def test_one_wrong_change_is_named_with_its_place_and_changes_nothing(
    api: Api, ids: list[str], change: dict[str, Any], status: int, field: str, code: str
) -> None:
    named = {} if code == "required" else {"memory_id": ids[1]}
    answer = patch(api, {"memory_id": ids[0], "content": "Changed"}, {**named, **change})
    error = error_of(answer, status)
    assert (error["attr"], error["code"]) == (f"memories.1.{field}", code)
    assert not Memory.objects.filter(content="Changed").exists()
    assert not MemoryRevision.objects.exists()


def test_a_batch_names_each_memory_once_and_none_that_was_superseded(
    api: Api, ids: list[str]
) -> None:
    twice = error_of(patch(api, {"memory_id": ids[0]}, {"memory_id": ids[0].upper()}), 400)
    assert (twice["attr"], twice["code"]) == ("memories.1.memory_id", "repeated")
    Memory.objects.filter(pk=ids[1]).update(status="superseded")
    old = error_of(patch(api, {"memory_id": ids[0]}, {"memory_id": ids[1], "tags": ["a"]}), 409)
    assert (old["attr"], old["code"]) == ("memories.1", "conflict")
    bodies: list[Any] = [{}, {"memories": []}, {"memories": [{"memory_id": ids[0]}] * 1_001}, []]
    for body in bodies:
        error_of(api.call("PATCH", PATH, body), 400)


def test_a_bound_token_changes_memories_of_its_chats_alone(api: Api) -> None:
    own, other = (stored(api, "We pay", whatsapp_chat=chat) for chat in (CLIENT, OTHER_CLIENT))
    public = stored(api, "We open at 9", whatsapp_chat=CLIENT, visibility="public")
    bound = api_with(chat_ids=token_chats([CLIENT]))
    for stranger in (other["memory_id"], str(uuid4())):
        error = error_of(
            patch(bound, {"memory_id": own["memory_id"]}, {"memory_id": stranger}), 400
        )
        assert error["detail"] == f"There is no memory {stranger}."
    for change in ({"memory_id": public["memory_id"]},
                   {"memory_id": own["memory_id"], "visibility": "public"}):  # fmt: skip
        error_of(patch(bound, change), 403)
    changed = patch(bound, {"memory_id": own["memory_id"], "tags": ["a"]})
    assert changed.json()["memories"][0]["tags"] == ["a"]
    error_of(patch(api_with("write"), {"memory_id": own["memory_id"]}), 403)
    Chat.objects.filter(whatsapp_chat=CLIENT).update(memory_enabled=False)
    refused = error_of(patch(bound, {"memory_id": own["memory_id"], "tags": []}), 403)
    assert refused["code"] == "memory_disabled"


def test_a_repeated_batch_has_one_effect(api: Api, ids: list[str]) -> None:
    change = {"memory_id": ids[0], "tags": ["a"]}
    first = patch(api, change, Idempotency_Key="k")
    api.call("PATCH", f"{PATH}{ids[0]}/", {"tags": ["b"]})
    again = patch(api, change, Idempotency_Key="k")
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (first.json(), "true")
    assert Memory.objects.get(pk=ids[0]).tags == ["b"]


@pytest.mark.django_db(transaction=True)
def test_batches_of_the_same_memories_in_other_orders_dont_block_each_other() -> None:
    api = api_with()
    scopes = ("public", "owner")
    keys = [
        stored(api, f"The lamp {n} costs {n}0", visibility=scopes[n % 2])["memory_id"]
        for n in range(20)
    ]

    def change(number: int) -> int:
        given = [{"memory_id": key, "metadata": {"by": number}} for key in keys]
        answer = patch(api_with(), *(given if number % 2 else given[::-1]))
        return int(answer.status_code)

    assert at_once(*(partial(change, number) for number in range(4))) == [200] * 4
    assert len(set(Memory.objects.values_list("metadata__by", flat=True))) == 1
