"""Memory documents over HTTP."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.models import AuditEvent
from tests.api.calling import Api, error_of

pytestmark = pytest.mark.django_db
DECISION = {"decision": "Use PostgreSQL", "status": "accepted", "own": {"ü": [1, None, "₪"]}}
PATH = "documents/decisions/use-postgres/"


def put(api: Api, path: str = PATH, body: Any = None, **headers: str) -> Any:
    return api.call("PUT", path, DECISION if body is None else body, **headers)


def names(api: Api, query: str = "") -> list[str]:
    return [each["name"] for each in api.walk(f"documents/{query}")]


def aged(name: str, days: int) -> None:
    changed = timezone.now() - timedelta(days=days)
    MemoryDocument.objects.filter(name=name).update(changed=changed)


def test_a_document_is_created_read_as_it_is_stored_and_updated(api: Api) -> None:
    made = put(api)
    assert made.status_code == 201
    assert made.json()["content"] == DECISION
    assert made.json()["meta"]["category"] == "decisions"
    read = api.get(PATH)
    assert read.content == made.content
    assert read.content.decode() == MemoryDocumentVersion.objects.get().body
    assert read["ETag"] == made["ETag"]
    assert read["Content-Location"] == f"/api/v1/{PATH}"
    assert api.get(PATH, If_None_Match=read["ETag"]).status_code == 304
    same = put(api)
    assert (same.status_code, same["ETag"]) == (200, made["ETag"])
    changed = put(api, f"{PATH}?session_id=s-1", {**DECISION, "status": "superseded"})
    assert changed.status_code == 200
    assert changed.json()["meta"]["created"] == made.json()["meta"]["created"]
    assert changed.json()["meta"]["session_id"] == "s-1"
    assert MemoryDocumentVersion.objects.count() == 2
    actors = AuditEvent.objects.filter(action="memory_document.save")
    assert set(actors.values_list("actor_kind", "actor")) == {("api", "tests")}


def test_only_the_version_that_was_read_is_replaced_with_if_match(api: Api) -> None:
    error_of(put(api, If_Match='"x"'), 412)
    error_of(put(api, If_Match="*"), 412)
    assert put(api, If_None_Match="*").status_code == 201
    error_of(put(api, If_None_Match="*"), 412)
    etag = api.get(PATH)["ETag"]
    changed = put(api, body={"decision": "Other"}, If_Match=etag)
    assert changed.status_code == 200
    error_of(put(api, body={"decision": "Third"}, If_Match=etag), 412)
    assert api.get(PATH).json()["content"] == {"decision": "Other"}


def test_in_context_the_date_is_put_before_the_name_and_the_newest_is_read(api: Api) -> None:
    made = put(api, "documents/context/feature-auth/", {"notes": "x"})
    place = made["Content-Location"]
    assert place.endswith("-feature-auth/")
    put(api, "documents/context/2020-01-01-feature-auth/", {"notes": "old"})
    assert api.get("documents/context/feature-auth/").json()["content"] == {"notes": "x"}
    assert api.get("documents/context/2020-01-01-feature-auth/").json()["content"]["notes"] == "old"
    assert api.get(place).content == made.content


def test_a_completed_handoff_goes_to_the_archive(api: Api) -> None:
    made = put(api, "documents/handoffs/task-42/", {"task": "t", "progress": "100%"})
    assert made.status_code == 201
    assert made["Content-Location"].endswith("/task-42/?archived=true")
    error_of(api.get("documents/handoffs/task-42/"), 404)
    assert api.get("documents/handoffs/task-42/?archived=true").content == made.content


def test_lists_are_filtered_and_come_in_pages(api: Api) -> None:
    for name in ("auth-login", "auth-logout", "Auth", "billing"):
        put(api, f"documents/interfaces/{name}/", {"module": name})
    put(api)
    put(api, "documents/context/auth-flow/", {"notes": "n"})
    aged("billing", 30)
    today = timezone.now().date().isoformat()
    context = f"{today}-auth-flow"
    interfaces = ["Auth", "auth-login", "auth-logout", "billing"]
    assert sorted(names(api)) == sorted([context, "use-postgres", *interfaces])
    assert names(api, "?limit=1") == names(api)
    assert sorted(names(api, "?pattern=auth*")) == sorted([context, "auth-login", "auth-logout"])
    assert sorted(names(api, "?pattern=auth*&since=7d&category=interfaces")) == [
        "auth-login",
        "auth-logout",
    ]
    assert sorted(names(api, "?pattern=[Aa]uth*&category=interfaces")) == interfaces[:3]
    assert "billing" not in names(api, "?since=7d")
    assert names(api, "?since=2999-01-01T00:00:00Z") == []
    assert names(api, "?archived=true") == []
    assert names(api, "?session_id=nobody") == []
    (one,) = api.get("documents/?category=decisions").json()["results"]
    assert (one["identifier"], one["status"], one["archived"]) == (
        "use-postgres",
        "accepted",
        False,
    )
    assert one["changed"].endswith("Z")


@pytest.mark.parametrize(
    ("raw", "attr"),
    [
        (b"", "content"),
        (b"{", "content"),
        (b"\xff", None),
        (b"[]", "content"),
        (b'{"decision": 5}', "decision"),
        (b'{"status": "open"}', "status"),
        (b'{"alternatives_considered": ["a", 5]}', "alternatives_considered.1"),
        (b'{"a": 1, "a": 2}', "a"),
        (b'{"x": "a\\u0000"}', "x"),
        (b'{"x": "\\ud800"}', "x"),
        (b'{"x": 1e999}', "x"),
        (b'{"x": "' + b"y" * (1024 * 1024) + b'"}', "content"),
    ],
)
def test_wrong_content_is_refused_with_its_place(api: Api, raw: bytes, attr: str | None) -> None:
    answer = api.call("PUT", PATH, raw)
    error = error_of(answer, 400)
    assert error["attr"] == attr
    assert not MemoryDocument.objects.exists()


def test_content_that_is_nested_too_deeply_is_refused(api: Api) -> None:
    error = error_of(api.call("PUT", PATH, b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}"), 400)
    # How much Python reads differs between its versions.
    assert error["attr"] == "content" or error["attr"].startswith("x.0.0.0")
    assert "nested deeper than 32 levels" in error["detail"]
    assert not MemoryDocument.objects.exists()


@pytest.mark.parametrize("identifier", ["..x", "-x", "a.json", "a:b", "nul", "a%00b", "x" * 250])
def test_a_name_that_can_be_none_is_refused(api: Api, identifier: str) -> None:
    answer = put(api, f"documents/decisions/{identifier}/")
    error_of(answer, 404 if "%00" in identifier else 400)
    assert not MemoryDocument.objects.exists()


def test_names_hold_dots_and_letters_of_any_script(api: Api) -> None:
    for name in ("v1.2@x", "שלום"):
        made = put(api, f"documents/decisions/{name}/")
        assert made.status_code == 201
        assert api.get(made["Content-Location"]).content == made.content


def test_what_is_not_there_is_404(api: Api) -> None:
    for path in ("documents/decisions/none/", "documents/nothing/none/"):
        error_of(api.get(path), 404)
        error_of(api.post(f"{path}archive/"), 404)
    error_of(put(api, "documents/nothing/none/"), 404)
    error_of(api.get(f"{PATH}?archived=maybe"), 400)
    error_of(api.get(f"{PATH}?colour=red"), 400)
    error_of(put(api, f"{PATH}?colour=red"), 400)
    error_of(api.call("PUT", PATH, b"x", Content_Type="text/plain"), 415)


def test_what_is_archived_is_out_of_the_list_and_never_overwritten(api: Api) -> None:
    put(api)
    moved = api.post(f"{PATH}archive/")
    assert moved.status_code == 200
    assert moved.json() == {
        "category": "decisions",
        "name": "use-postgres",
        "path": "archive/decisions/use-postgres.json",
        "archived": True,
    }
    error_of(api.post(f"{PATH}archive/"), 404)
    assert names(api) == []
    put(api)
    assert api.post(f"{PATH}archive/").json()["name"] == "use-postgres.2"
    assert names(api, "?archived=true") == ["use-postgres", "use-postgres.2"]


def test_what_is_old_is_removed_but_never_from_the_archive(api: Api) -> None:
    for name in ("old", "new", "kept"):
        put(api, f"documents/decisions/{name}/")
    api.post("documents/decisions/kept/archive/")
    aged("old", 10)
    aged("kept", 10)
    body = {"category": "decisions", "older_than": "7d"}
    answer = api.post("documents/cleanup/", body)
    assert answer.status_code == 200
    assert answer.json() == {"removed": 1, "names": ["old"]}
    assert api.post("documents/cleanup/", body).json()["removed"] == 0
    assert names(api) == ["new"]
    assert names(api, "?archived=true") == ["kept"]


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({}, "category"),
        ({"category": "x", "older_than": "7d"}, "category"),
        ({"category": "context"}, "older_than"),
        ({"category": "context", "older_than": "soon"}, "older_than"),
        ({"category": "context", "older_than": "-1d"}, "older_than"),
        ({"category": "context", "older_than": 7}, "older_than"),
        ({"category": "context", "older_than": "9" * 19 + "d"}, "older_than"),
        ({"category": "context", "older_than": "7d", "x": 1}, "x"),
    ],
)
def test_a_cleanup_of_no_sense_is_refused(api: Api, body: dict[str, Any], attr: str) -> None:
    put(api)
    assert error_of(api.post("documents/cleanup/", body), 400)["attr"] == attr
    assert json.loads(api.get(PATH).content)["content"] == DECISION


def test_what_get_gave_is_put_as_the_document_that_it_is(api: Api) -> None:
    put(api)
    whole = api.get(PATH).json()
    again = put(api, body=whole)
    assert (again.status_code, again.json()) == (200, whole)
    assert api.get(PATH).json() == whole
    error = error_of(put(api, body={**whole, "content": whole}), 400)
    assert "whole document" in error["detail"]
    assert api.get(PATH).json() == whole
