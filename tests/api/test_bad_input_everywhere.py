"""Every route of the list refuses what makes no sense, in the one shape, and does nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings, strategies as st

from memoryproject.foundation.outgoing_webhooks.deliveries import delivery_test
from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint
from sessions_app.models import ChatSession, Message, SummarizationMetadata, Turn
from tests.api.calling import Api, api_with, error_of
from tests.api.routes import SCOPE_OF
from tests.api.test_bad_input import BROKEN_BODIES, MEGABYTE
from tests.api.test_chat import say
from tests.api.test_scopes import CALLS, ROUTES
from tests.api.test_sessions import opened
from tests.fuzz.damage import FACTOR
from tests.hooks.receiver import endpoint_at

pytestmark = pytest.mark.django_db

CHAT, OTHER = "15550100123@c.us", "15550100456@c.us"
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
# They are looked at later.
JOB_OF_LINES = "api-jobs-import"
# What takes nothing at all, or may.
NEEDS_NO_BODY = {
    *("api-session-reset", "api-session-expire", "api-session-card", "api-session-context"),
    *("api-document-archive", "api-memory", "api-chat-detail", "api-webhook", "api-webhook-test"),
    *("api-webhook-rotate", "api-webhook-redeliver", "api-jobs-export", "api-jobs-reembed"),
}
# So many megabytes are taken, where it isn't three.
TAKES_MORE = {"api-transcripts", "api-transcripts-check", LINES, JOB_OF_LINES}


@pytest.fixture(scope="module")
def api(module_rows: None) -> Api:
    return api_with()


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
    api.call("PUT", "memories/keyed/notes/kept/", {"value": {"n": 1}})
    endpoint = endpoint_at("http://127.0.0.1:9/")
    return {
        **{"namespace": "notes", "key": "kept"},
        "endpoint_id": str(endpoint.public_id),
        "delivery_id": str(delivery_test(endpoint_id=endpoint.pk).event_id),
        "job_id": api.post("jobs/reembed/").json()["job_id"],
        **{"whatsapp_chat": CHAT, "session_id": said["session_id"], "turn_id": said["turn_id"]},
        "message_id": said["message_id"],
        **{"memory_id": memory, "receipt_id": receipt},
        **{"summary_metadata_id": str(summary.pk), "document_id": file["document_id"]},
        **{"category": "decisions", "identifier": "use-postgres"},
    }


@pytest.fixture(scope="module")
def many_rows(api: Api, ids: dict[str, str]) -> None:
    """Some of what each list holds."""
    for number in range(5):
        other = {"whatsapp_chat": f"1555010{number:04}@c.us"}
        body = {"messages": [{"role": "user", "content": f"number {number}"}]}
        api.post(f"sessions/{ids['session_id']}/messages/", body)
        api.post("sessions/", other)
        memory = api.post("memories/", {"content": f"Door {number} is red", **other}).json()
        api.delete(f"memories/{memory['memory_id']}/")
        api.post("memories/", {"content": f"Door {number} is blue", **other})
        api.upload(f"Gate {number}".encode(), f"{number}.txt", other)
        api.call("PUT", f"documents/decisions/door-{number}/", {"decision": f"Paint {number}"})
        delivery_test(endpoint_id=endpoint_at("http://127.0.0.1:9/", f"crm {number}").pk)
        delivery_test(endpoint_id=WebhookEndpoint.objects.get(public_id=ids["endpoint_id"]).pk)
        api.post("jobs/export/")
        api.call("PUT", f"memories/keyed/notes/key-{number}/", {"value": {"n": number}})
        api.call("PUT", f"memories/keyed/notes.{number}/kept/", {"value": {"n": number}})


def address(name: str, ids: dict[str, str]) -> str:
    return re.sub(r"<\w+:(\w+)>", lambda found: ids[found[1]], ROUTES[name][0])


def counts() -> list[int]:
    return [model._default_manager.count() for model in (ChatSession, Message, Turn)]


@pytest.mark.parametrize(("name", "method"), WITH_BODY)
def test_a_broken_body_is_refused(name: str, method: str, api: Api, ids: dict[str, str]) -> None:
    before = counts()
    for kind, body in BROKEN_BODIES.items():
        answer = api.call(method, address(name, ids), body)
        if name == JOB_OF_LINES:
            assert answer.status_code == 202, kind
        elif name == LINES:
            assert answer.status_code == 200, kind
            assert answer.json()["created"] == 0, kind
        elif kind == "nothing" and name in NEEDS_NO_BODY:
            continue
        else:
            error_of(answer, 400)
    assert name in NEEDS_NO_BODY or counts() == before


@pytest.mark.parametrize(("name", "method"), WITH_BODY)
def test_an_unknown_field_is_refused(name: str, method: str, api: Api, ids: dict[str, str]) -> None:
    answer = api.call(method, address(name, ids), {"colour": "red"})
    if name == JOB_OF_LINES:
        assert answer.status_code == 202
    elif name == LINES:
        assert answer.json()["created"] == 0
    elif name == "api-document":  # which keeps fields that it doesn't know
        assert answer.status_code == 200
    else:
        codes = {error["code"] for error in answer.json()["errors"]}
        assert codes & {"unknown_field", "required"}, answer.content
        error_of(answer, 400)


@pytest.mark.parametrize(("name", "method"), WITH_BODY)
def test_a_body_of_ten_megabytes_is_refused(
    name: str, method: str, api: Api, ids: dict[str, str]
) -> None:
    body = json.dumps({"content": "x" * (10 * MEGABYTE)}).encode()
    answer = api.call(method, address(name, ids), body)
    if name not in TAKES_MORE:
        assert "3 MB" in error_of(answer, 413)["detail"]
    else:
        assert answer.status_code in (200, 202, 400)


@pytest.mark.parametrize(("name", "method"), WITH_BODY)
def test_a_form_is_415(name: str, method: str, api: Api, ids: dict[str, str]) -> None:
    for form in ("application/x-www-form-urlencoded", "multipart/form-data", "x"):
        answer = api.call(method, address(name, ids), b"a=b", Content_Type=form)
        if name == JOB_OF_LINES:
            assert answer.status_code == 202
        elif name == LINES:
            assert answer.json()["created"] == 0
        else:
            error_of(answer, 415)


@pytest.mark.parametrize(("name", "method"), CALLS)
def test_an_unknown_parameter_is_refused(
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


STORING: dict[str, tuple[str, Any]] = {
    "a session": ("POST sessions/", {"whatsapp_chat": OTHER}),
    "a new session": ("POST sessions/{session_id}/reset/", {}),
    "messages": (
        "POST sessions/{session_id}/messages/",
        {"messages": [{"role": "user", "content": "x"}]},
    ),
    "an exchange": ("POST sessions/{session_id}/exchanges/", {"query": "x", "reply": "y"}),
    "a memory": ("POST memories/", {"content": "x"}),
    "memories": ("POST memories/batch/", {"memories": [{"content": "x"}]}),
    "lines": ("POST memories/import/", {"content": "x", "visibility": "public"}),
    "a change": ("PATCH memories/{memory_id}/", {"content": "y"}),
    "a transcript": ("POST transcripts/", {"text": "User: a\nAssistant: b\n"}),
    "a document": ("PUT documents/decisions/new/", {"decision": "x"}),
}


@pytest.mark.parametrize("kind", STORING)
def test_where_memory_is_off_none_is_kept(
    kind: str, api: Api, ids: dict[str, str], settings: Any
) -> None:
    (call, body), before = STORING[kind], counts()
    method, path = call.format(**ids).split()
    settings.ENABLE_MEMORY_SYSTEM = False
    assert error_of(api.call(method, path, body), 403)["code"] == "memory_disabled"
    assert counts() == before
    settings.ENABLE_MEMORY_SYSTEM = True
    assert api.call(method, path, body).status_code in (200, 201)


@pytest.mark.parametrize("name", LISTS)
def test_a_page_takes_as_many_statements_for_many_rows_as_for_few(
    name: str, api: Api, ids: dict[str, str], many_rows: None, django_assert_max_num_queries: Any
) -> None:
    path = f"{address(name, ids)}?limit="
    api.get(f"{path}1")
    with CaptureQueriesContext(connection) as few:
        api.get(f"{path}2")
    with django_assert_max_num_queries(len(few)):
        rows = api.get(f"{path}100").json()["results"]
    assert len(rows) > 5 or name == "api-session-summaries"


@pytest.mark.parametrize("name", LISTS)
def test_a_wrong_parameter_of_a_list_is_refused(name: str, api: Api, ids: dict[str, str]) -> None:
    for query in wrong_queries(name):
        error = error_of(api.get(f"{address(name, ids)}?{query}"), 400)
        assert error["attr"] == query.split("=")[0]


@pytest.mark.parametrize(
    ("name", "query"),
    [
        *(("api-chats", "is_group=perhaps"), ("api-memories", "pinned=1")),
        *(("api-documents", "archived=yes"), ("api-documents", "since=soon")),
        *(("api-documents", "since=7y"), ("api-documents", "category=lunch")),
        *(("api-documents", "since=-7d"), ("api-documents", "pattern=" + "x" * 300)),
        ("api-audit", "since=2026-13-01T00:00:00Z"),
        *(("api-audit", "until=9999-12-31T23:59:59-12:00"), ("api-sessions", "status=asleep")),
        *(("api-memories", "visibility=all"), ("api-memories", "status=gone")),
        *(
            ("api-sessions", "since=2026-01-01&since=2026-01-02"),
            ("api-memories", "limit=1&limit=2"),
        ),
        *(("api-memories", "since=yesterday"), ("api-chats", "colour=red")),
        ("api-session-messages", "before=yesterday"),
        ("api-session-messages", "before=9999-12-31T23:59:59-12:00"),
        ("api-memories-export", "embeddings=perhaps"),
    ],
)
def test_a_wrong_filter_is_refused(name: str, query: str, api: Api, ids: dict[str, str]) -> None:
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


def test_the_lists_are_those_that_there_are() -> None:
    told: Any = {"api-sessions", "api-session-messages", "api-chats", "api-memories"}
    rest = {"api-audit", "api-documents", "api-files", "api-receipts", "api-session-summaries"}
    rest |= {"api-webhooks", "api-webhook-deliveries", "api-events", "api-jobs"}
    rest |= {"api-keyed-list", "api-keyed-namespaces"}
    assert set(LISTS) == told | rest


# Any JSON at all gets an answer in the one shape: never a 500, and never half an effect.


TEXTS = st.text(st.characters(codec=None), max_size=12)
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FIELDS = {
    "chat/": ["whatsapp_chat", "content", "stream"],
    "sessions/": ["whatsapp_chat"],
    "sessions/{id}/messages/": ["messages"],
    "sessions/{id}/context/": ["query", "max_tokens"],
    "memories/": ["content", "type", "category", "tags", "visibility", "whatsapp_chat", "metadata",
                  "pinned", "expires_at"],
    "memories/batch/": ["memories"],
    "memories/recall/": ["query", "top_k", "min_similarity", "whatsapp_chat", "type", "tags",
                         "metadata", "sources"],
    "transcripts/validate/": ["text", "whatsapp_chat", "append"],
    "transcripts/": ["text", "whatsapp_chat", "append"],
    "documents/cleanup/": ["category", "older_than"],
}  # fmt: skip


@pytest.fixture(scope="module")
def session_id(module_rows: None) -> str:
    return str(opened(api_with())["session_id"])


def objects(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), VALUES, max_size=len(names))


def check(answer: Any) -> None:
    if answer.status_code not in (200, 201):
        assert 400 <= answer.status_code < 500, (answer.status_code, answer.content)
        error_of(answer, answer.status_code)


ANY = settings(
    max_examples=8 * FACTOR,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("path", sorted(FIELDS))
@ANY
@given(data=st.data())
def test_any_body_gets_an_answer(api: Api, session_id: str, path: str, data: st.DataObject) -> None:
    body = data.draw(st.binary(max_size=200) | VALUES | objects(FIELDS[path]))
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    check(api.call("POST", path.format(id=session_id), raw))


@ANY
@given(body=objects(FIELDS["memories/"]))
def test_any_memory_that_is_stored_is_stored_as_it_is(api: Api, body: dict[str, Any]) -> None:
    """The other fields right, so that the one counts."""
    wanted = {"content": "x", **body}
    answer = api.call("POST", "memories/", json.dumps(wanted).encode())
    check(answer)
    if answer.status_code == 201:
        told = answer.json()
        for name in set(wanted) - {"expires_at", "whatsapp_chat"}:
            assert told[name] == wanted[name]
        change = {name: value for name, value in wanted.items() if name != "whatsapp_chat"}
        path = f"memories/{told['memory_id']}/"
        check(api.call("PATCH", path, json.dumps(change).encode()))


@ANY
@given(content=VALUES, category=st.sampled_from(["context", "decisions", "interfaces", "handoffs"]))
def test_any_content_of_a_document_gets_an_answer(api: Api, content: Any, category: str) -> None:
    answer = api.call("PUT", f"documents/{category}/any/", json.dumps(content).encode())
    check(answer)
    if answer.status_code in (200, 201):
        assert answer.json()["content"] == content


@ANY
@given(lines=st.binary(max_size=60) | st.lists(VALUES, max_size=3).map(
    lambda values: b"\n".join(json.dumps(value).encode() for value in values)
))  # fmt: skip
def test_any_lines_get_a_report(api: Api, lines: bytes) -> None:
    answer = api.call("POST", "memories/import/", lines, Content_Type="application/x-ndjson")
    assert answer.status_code == 200
    assert set(answer.json()) == {"created", "duplicates", "errors"}


@ANY
@given(name=st.sampled_from(["type", "tags", "whatsapp_chat", "since", "text", "cursor", "limit",
                             "status", "pinned", "source", "format", "colour"]),
       value=st.text(max_size=20))  # fmt: skip
def test_any_filter_gets_an_answer(api: Api, name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    for path in ("memories/", "audit/", "documents/"):
        answer = api.client.get(f"/api/v1/{path}", {name: value}, headers=api.headers)
        if answer.status_code != 200:
            assert answer.status_code in (400, 404), answer.content
            error_of(answer, answer.status_code)
