"""Whatever is posted is answered in words, without a traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memories_app.models import Memory
from sessions_app.mcp.tools import TOOLS
from tests.api.calling import make_token
from tests.fuzz.damage import FACTOR
from tests.mcp.rpc import ADDRESS, Rpc
from tests.mcp.test_tools import ARGUMENTS

pytestmark = pytest.mark.django_db


@pytest.fixture
def rpc() -> Rpc:
    return Rpc(make_token())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"no JSON",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"3",
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
        b'[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list\\ud800"}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_an_error_of_json_rpc(body: bytes, rpc: Rpc) -> None:
    answer = rpc.post(body)
    assert answer.status_code == 400, answer.content
    document = answer.json()
    assert document["jsonrpc"] == "2.0"
    assert document["error"]["code"] in (-32700, -32600, -32602)
    assert document["error"]["message"]
    assert b"Traceback" not in answer.content


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/list", {"cursor": "wrong"}, -32602),
        ("no/such/method", {}, -32601),
        ("resources/list", {}, -32601),
        ("tools/call", {"name": "no_such_tool", "arguments": {}}, -32602),
        ("tools/call", {"name": "remember", "arguments": []}, -32602),
        ("tools/call", {"name": "remember", "arguments": "content"}, -32602),
        ("tools/call", {"arguments": {}}, -32602),
        ("tools/call", {"name": "recall\0", "arguments": {}}, -32602),
    ],
)
def test_wrong_calls_are_protocol_errors(method: str, params: Any, code: int, rpc: Rpc) -> None:
    assert rpc.ask(method, params)["error"]["code"] == code


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("remember", {"content": "a\0b"}, "content: It holds a NUL character"),
        ("remember", {"content": "a", "metadata": {"n": {"x\0": 1}}}, "metadata.n: It holds a NUL"),
        ("remember", {"content": ""}, "content: "),
        ("remember", {"content": 3}, "content: Not a valid string."),
        ("remember", {"contend": "a"}, "contend: There is no such field here."),
        ("remember", {}, "content: This field is required."),
        ("remember", {"content": "a", "tags": ["a", 3]}, "tags.1: Not a valid string."),
        ("remember", {"content": "x" * 9000}, "content: "),
        ("recall", {"query": "a\0b"}, "query: It holds a NUL character"),
        ("recall", {"query": "a", "min_similarity": 2}, "min_similarity: "),
        ("recall", {"query": "a", "top_k": "many"}, "top_k: "),
        ("recall", {"query": "a", "sources": ["messages"]}, "whatsapp_chat: "),
        ("forget", {"memory_id": "not-an-id"}, "memory_id: Must be a valid UUID."),
        ("forget", {"memory_id": "\0"}, "memory_id: It holds a NUL character"),
        ("get_context", {"session_id": "x"}, "session_id: Must be a valid UUID."),
        ("get_context", {"whatsapp_chat": "a\0"}, "whatsapp_chat: It holds a NUL character"),
        ("list_sessions", {"limit": 0}, "limit: "),
        ("list_sessions", {"limit": "ten"}, "limit: "),
        (
            "list_sessions",
            {"status": "asleep"},
            'status: "asleep" is not one of active, expired, archived.',
        ),
        ("list_sessions", {"since": "yesterday"}, "since: "),
        ("list_sessions", {"since": "a\0"}, "since: It holds a NUL character"),
        ("get_card", {"session_id": "x", "format": "pdf"}, "format: "),
        ("save_document", {"category": "c", "identifier": "a", "content": {}}, "category: "),
        (
            "save_document",
            {"category": "context", "identifier": "a\0", "content": {}},
            "identifier: It holds a NUL character",
        ),
        (
            "save_document",
            {"category": "context", "identifier": "a", "content": {"notes": "\0"}},
            "content.notes: It holds a NUL character",
        ),
        ("load_document", {"category": "context", "identifier": "a/b"}, "identifier: "),
        ("load_document", {"category": "context", "identifier": "a", "archived": "no"}, "archived"),
    ],
)
def test_wrong_arguments_are_told_by_place(name: str, arguments: Any, says: str, rpc: Rpc) -> None:
    assert says in rpc.refusal(name, arguments)
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("where", "place"),
    [({"a": 1}, "where.a: "), ({"and": [{"a": 1}]}, "where.and[0].a: "), ([], "where: ")],
)
def test_a_wrong_condition_names_its_place_once(where: Any, place: str, rpc: Rpc) -> None:
    refusal = rpc.refusal("recall", {"query": "a", "where": where})
    assert refusal.startswith(place)
    assert refusal.count("where") == 1


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(
    max_examples=20 * FACTOR,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_arguments_get_an_answer(data: st.DataObject, rpc: Rpc) -> None:
    name = data.draw(st.sampled_from(sorted(TOOLS)))
    fields = sorted(TOOLS[name].shown.input_schema["properties"])
    example = ARGUMENTS[name]
    changed = data.draw(st.dictionaries(st.sampled_from(fields), ODD, max_size=2))
    # Half of a character is no JSON for the package; NaN is none for anybody.
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": name, "arguments": {**example, **changed}},
        }
    )
    answer = rpc.post(body.encode())
    if answer.status_code == 400:
        assert answer.json()["error"]["code"] in (-32700, -32602)
        return
    assert answer.status_code == 200, answer.content
    result = answer.json()["result"]
    assert result["content"]
    assert "Something went wrong" not in answer.content.decode()
    assert "A server error" not in answer.content.decode()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ([{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}], "has no batches"),
        ([], "has no batches"),
        (b"null", "is a JSON object"),
        (b"3", "is a JSON object"),
        ({"jsonrpc": "1.0", "id": 1, "method": "tools/list"}, 'must be "2.0"'),
        ({"id": 1, "method": "tools/list"}, 'must be "2.0"'),
        ({"jsonrpc": 2.0, "id": 1, "method": "tools/list"}, 'must be "2.0"'),
        ({"jsonrpc": "2.0", "id": 1}, "method is missing"),
        ({"jsonrpc": "2.0", "id": 1, "method": 3}, "method must be a text"),
        ({"jsonrpc": "2.0", "id": {}, "method": "tools/list"}, "id must be"),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": [1]}, "must be an object"),
    ],
)
def test_what_is_wrong_with_a_message_is_told_in_a_sentence(body: Any, says: str, rpc: Rpc) -> None:
    error = rpc.post(body).json()["error"]
    assert error["code"] == -32600
    assert says in error["message"]


@pytest.mark.parametrize("version", ["1999-01-01", "2099-01-01", "2026-07-28 ", "latest", "2"])
def test_an_unknown_version_of_the_protocol_is_told_with_those_that_there_are(
    version: str, rpc: Rpc
) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": version}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answers = [
        rpc.post({**body, "params": {"_meta": meta}}),
        rpc.post(body, MCP_Protocol_Version=version),
    ]
    for answer in answers[: 1 if version != version.strip() else 2]:
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, -32022)
        assert "2026-07-28" in error["data"]["supported"]
        assert "2025-11-25" in error["message"]


def test_without_a_handshake_each_call_stands_on_its_own(rpc: Rpc) -> None:
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    for method, found in (("server/discover", "supportedVersions"), ("tools/list", "tools")):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}
        answer = rpc.post(body, MCP_Protocol_Version=version, Mcp_Method=method)
        assert answer.status_code == 200, answer.content
        assert answer.json()["result"][found]
        assert not answer.has_header("Mcp-Session-Id")


def test_a_body_above_three_megabytes_is_413(rpc: Rpc) -> None:
    params = {"name": "remember", "arguments": {"content": "x" * (3 * 1024 * 1024)}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = rpc.post(body)
    assert answer.status_code == 413
    assert "larger than 3 MB" in answer.json()["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
def test_without_sessions_and_streams_only_post_is_allowed(method: str, rpc: Rpc) -> None:
    answer = rpc.api.call(method, ADDRESS, **rpc.headers)
    assert answer.status_code == 405
    assert answer["Allow"] == "POST"
    assert answer.json()["jsonrpc"] == "2.0"


def test_a_notification_is_taken_without_an_answer(rpc: Rpc) -> None:
    answer = rpc.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status_code, answer.content) == (202, b"")


def test_the_address_may_be_written_without_its_last_slash(rpc: Rpc) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {**rpc.headers, "Accept": "application/json"}
    assert rpc.api.call("POST", "/mcp", body, **headers).status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:8000", 200),
        ("http://127.0.0.1", 200),
        ("http://[::1]:8000", 200),
        ("https://LOCALHOST", 200),
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://evil.example:8000", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
        ("localhost", 403),
    ],
)
def test_a_page_of_another_origin_may_not_call(origin: str, status: int, rpc: Rpc) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = rpc.post(body, Origin=origin)
    assert answer.status_code == status, answer.content
    if status == 403:
        assert "ALLOWED_HOSTS" in answer.json()["error"]["message"]


def test_a_body_that_is_no_json_by_its_own_word_is_415(rpc: Rpc) -> None:
    answer = rpc.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, Content_Type="text/plain")
    assert answer.status_code == 415
    assert answer.json()["jsonrpc"] == "2.0"
