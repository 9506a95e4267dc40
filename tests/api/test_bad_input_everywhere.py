"""Every route of the list refuses what makes no sense, in the one shape, and does nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.models import ChatSession, Message, SummarizationMetadata, Turn
from tests.api.calling import Api, error_of
from tests.api.conftest import make_token
from tests.api.routes import SCOPE_OF
from tests.api.test_bad_input import BROKEN_BODIES, MEGABYTE
from tests.api.test_chat import say
from tests.api.test_scopes import CALLS, ROUTES

pytestmark = pytest.mark.django_db

CHAT = "15550100123@c.us"
# Takes a form, and nothing else: tests/api/test_files.py.
FORM = "api-files"
WITH_BODY = [
    (name, method) for name, method in CALLS if method in ("POST", "PUT", "PATCH") and name != FORM
]
LISTS = sorted(
    name for name in SCOPE_OF if hasattr(getattr(ROUTES[name][1], "view_class", None), "ordering")
)
# Lines that make no sense are told one by one; the rest goes in.
LINES = "api-memories-import"
# What takes nothing at all, or may.
NEEDS_NO_BODY = {
    *("api-session-reset", "api-session-expire", "api-session-card", "api-session-context"),
    *("api-document-archive", "api-memory"),
}
# So many megabytes are taken, where it isn't three.
TAKES_MORE = {"api-transcripts", "api-transcripts-check", LINES}


@pytest.fixture(scope="module")
def api(module_rows: None) -> Api:
    return Api(make_token())


@pytest.fixture(scope="module")
def ids(api: Api) -> dict[str, str]:
    """What can be named, of each kind one."""
    said = say(api, "hello", CHAT)
    memory = api.post("memories/", {"content": "We open at 9"}).json()["memory_id"]
    passing = api.post("memories/", {"content": "It rains"}).json()["memory_id"]
    receipt = api.delete(f"memories/{passing}/").json()["receipt_id"]
    message = Message.objects.get(pk=said["message_id"])
    summary = SummarizationMetadata.objects.create(
        **{"session": message.session, "number": 1, "summary_message": message},
        **{"summarized_message_ids": [message.pk], "first_order": 1, "last_order": 1},
        **{"range_start": message.timestamp, "range_end": message.timestamp},
        created_at=message.timestamp,
    )
    file = api.upload(b"We open at 9", "hours.txt").json()
    api.call("PUT", "documents/decisions/use-postgres/", b'{"decision": "Use PostgreSQL"}')
    return {
        **{"whatsapp_chat": CHAT, "session_id": said["session_id"], "turn_id": said["turn_id"]},
        "message_id": said["message_id"],
        **{"memory_id": memory, "receipt_id": receipt},
        **{"summary_metadata_id": str(summary.pk), "document_id": file["document_id"]},
        **{"category": "decisions", "identifier": "use-postgres"},
    }


def address(name: str, ids: dict[str, str]) -> str:
    return re.sub(r"<\w+:(\w+)>", lambda found: ids[found[1]], ROUTES[name][0])


def counts() -> list[int]:
    return [model._default_manager.count() for model in (ChatSession, Message, Turn)]


@pytest.mark.parametrize(("name", "method"), WITH_BODY)
def test_a_broken_body_is_refused(name: str, method: str, api: Api, ids: dict[str, str]) -> None:
    before = counts()
    for kind, body in BROKEN_BODIES.items():
        answer = api.call(method, address(name, ids), body)
        if name == LINES:
            assert answer.status_code == 200, kind
            assert answer.json()["created"] == 0, kind
        elif kind == "nothing" and name in NEEDS_NO_BODY:
            continue
        else:
            error_of(answer, 400)
    assert name in NEEDS_NO_BODY or counts() == before


@pytest.mark.parametrize(("name", "method"), WITH_BODY)
def test_a_field_that_nobody_reads_is_refused(
    name: str, method: str, api: Api, ids: dict[str, str]
) -> None:
    answer = api.call(method, address(name, ids), {"colour": "red"})
    if name == LINES:
        assert answer.json()["created"] == 0
    elif name == "api-document":  # which keeps fields that it doesn't know
        assert answer.status_code == 200
    else:
        codes = {error["code"] for error in answer.json()["errors"]}
        assert codes & {"unknown_field", "required"}, answer.content
        error_of(answer, 400)


@pytest.mark.parametrize(("name", "method"), WITH_BODY)
def test_ten_megabytes_are_refused_where_three_are_taken(
    name: str, method: str, api: Api, ids: dict[str, str]
) -> None:
    body = json.dumps({"content": "x" * (10 * MEGABYTE)}).encode()
    answer = api.call(method, address(name, ids), body)
    if name not in TAKES_MORE:
        error_of(answer, 413)
    else:
        assert answer.status_code in (200, 400)


@pytest.mark.parametrize(("name", "method"), WITH_BODY)
def test_a_form_is_415(name: str, method: str, api: Api, ids: dict[str, str]) -> None:
    form = "application/x-www-form-urlencoded"
    answer = api.call(method, address(name, ids), b"a=b", Content_Type=form)
    if name == LINES:
        assert answer.json()["created"] == 0
    else:
        error_of(answer, 415)


@pytest.mark.parametrize(("name", "method"), CALLS)
def test_a_parameter_that_nobody_reads_is_refused(
    name: str, method: str, api: Api, ids: dict[str, str]
) -> None:
    before = counts()
    for query in ("colour=red", "a%00b=1", "format=&format=json", "%FF=1"):
        error_of(api.call(method, f"{address(name, ids)}?{query}"), 400)
    assert counts() == before


def wrong_queries(name: str) -> Iterator[str]:
    """What the parameters of a list can't be."""
    for value in ("0", "-1", "1001", "9" * 50, "ten", "", "1.5", "null", "%D9%A1"):
        yield f"limit={value}"
    for value in ("x", "", "%00", "e30", "W10", "W1tdLDFd", "%D7%90", "W1siYSJdLHRydWVd"):
        yield f"cursor={value}"
    filters = getattr(ROUTES[name][1].view_class, "filterset_class", None)
    for field in filters.base_filters if filters else ():
        # Never nothing: an unset variable of a script would ask for all.
        yield f"{field}="
        yield f"{field}=a%00b"


@pytest.mark.parametrize("name", LISTS)
def test_a_parameter_of_a_list_that_makes_no_sense_is_refused(
    name: str, api: Api, ids: dict[str, str]
) -> None:
    for query in wrong_queries(name):
        error = error_of(api.get(f"{address(name, ids)}?{query}"), 400)
        assert error["attr"] == query.split("=")[0]


@pytest.mark.parametrize(
    ("name", "query"),
    [
        *(("api-chats", "is_group=perhaps"), ("api-memories", "pinned=1")),
        *(("api-documents", "archived=yes"), ("api-documents", "since=soon")),
        *(("api-documents", "since=7y"), ("api-documents", "category=lunch")),
        ("api-audit", "since=2026-13-01T00:00:00Z"),
        *(("api-audit", "until=9999-12-31T23:59:59-12:00"), ("api-sessions", "status=asleep")),
        *(("api-memories", "visibility=all"), ("api-memories", "status=gone")),
        *(
            ("api-sessions", "since=2026-01-01&since=2026-01-02"),
            ("api-memories", "limit=1&limit=2"),
        ),
        ("api-session-messages", "before=yesterday"),
        ("api-memories-export", "embeddings=perhaps"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    name: str, query: str, api: Api, ids: dict[str, str]
) -> None:
    error = error_of(api.get(f"{address(name, ids)}?{query}"), 400)
    assert error["attr"] == query.split("=")[0]


@pytest.mark.parametrize(("name", "method"), [each for each in CALLS if "<" in ROUTES[each[0]][0]])
def test_what_is_no_id_is_not_there(name: str, method: str, api: Api, ids: dict[str, str]) -> None:
    body = b"" if method == "GET" else b"{}"
    for kind, key in re.findall(r"<(\w+):(\w+)>", ROUTES[name][0]):
        wrongs = ["a%00b"]
        if kind == "id":
            wrongs += ["x", "1", "0b0e7c1e-3f5a-4c7e-9d52", "%00", "%FF", "9" * 3000, "..%2F"]
        for wrong in wrongs:
            error_of(api.call(method, address(name, {**ids, key: wrong}), body), 404)


@pytest.mark.parametrize("name", sorted(SCOPE_OF))
def test_every_address_tells_what_it_takes_and_refuses_other_methods(
    name: str, api: Api, ids: dict[str, str]
) -> None:
    asked = api.call("OPTIONS", address(name, ids))
    assert asked.status_code == 200
    assert set(SCOPE_OF[name]) <= set(asked["Allow"].split(", "))
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - set(SCOPE_OF[name]):
        refused = api.call(method, address(name, ids))
        assert error_of(refused, 405)["code"] == "method_not_allowed"
        assert set(SCOPE_OF[name]) <= set(refused["Allow"].split(", "))


def test_the_lists_are_those_that_there_are() -> None:
    told: Any = {"api-sessions", "api-session-messages", "api-chats", "api-memories"}
    rest = {"api-audit", "api-documents", "api-files", "api-receipts", "api-session-summaries"}
    assert set(LISTS) == told | rest
