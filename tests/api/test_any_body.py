"""Any JSON at all gets an answer in the one shape: never a 500, and never half an effect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.calling import Api, error_of

pytestmark = pytest.mark.django_db

TEXTS = st.text(st.characters(codec=None), max_size=12)
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FIELDS = {
    "memories/": ["content", "type", "category", "tags", "visibility", "whatsapp_chat", "metadata",
                  "pinned", "expires_at"],
    "memories/batch/": ["memories"],
    "memories/recall/": ["query", "top_k", "min_similarity", "whatsapp_chat", "type", "tags",
                         "metadata", "sources"],
    "transcripts/validate/": ["text", "whatsapp_chat", "append"],
    "transcripts/": ["text", "whatsapp_chat", "append"],
    "documents/cleanup/": ["category", "older_than"],
}  # fmt: skip


def objects(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), VALUES, max_size=len(names))


def check(answer: Any) -> None:
    if answer.status_code not in (200, 201):
        assert 400 <= answer.status_code < 500, (answer.status_code, answer.content)
        error_of(answer, answer.status_code)


ANY = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("path", sorted(FIELDS))
@ANY
@given(data=st.data())
def test_any_object_gets_an_answer(api: Api, path: str, data: st.DataObject) -> None:
    given_body = data.draw(VALUES | objects(FIELDS[path]))
    check(api.call("POST", path, json.dumps(given_body).encode()))


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
