"""What a write says that it did."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from tests.api.calling import Api, error_of

pytestmark = pytest.mark.django_db

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


def test_nothing_new_is_no_change(api: Api) -> None:
    body = {"content": "We open at 9", "tags": ["a"], "metadata": {"v": 1}}
    remember(api, 201, **body)
    known = remember(api, 200, **body)
    assert done(known) == NONE
    assert known["told_count"] == 2
    assert not AuditEvent.objects.filter(action="memory.update").exists()


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


def test_the_same_key_gives_the_same_answer_after_a_merge(api: Api) -> None:
    remember(api, 201, content="We open at 9")
    body = {"content": "We open at 9", "tags": ["b"]}
    first, second = (api.post("memories/", body, Idempotency_Key="k") for _ in range(2))
    assert first.json() == second.json()
    assert first.json()["merged"] == ["tags"]
