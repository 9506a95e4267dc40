"""Wrong input is refused in the one shape, with what is wrong, and stores nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.models import Chat, ChatSession, Message, Turn
from tests.api.calling import JSON, Api, error_of
from tests.api.conftest import make_token
from tests.api.test_sessions import opened

pytestmark = pytest.mark.django_db

SESSION = "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"
POSTS = ["chat/", "sessions/", "sessions/{id}/messages/", "sessions/{id}/context/"]
GETS = ["sessions/", "sessions/{id}/messages/", "chats/"]
MEGABYTE = 1024 * 1024

BROKEN_BODIES = {
    "no JSON": b"{",
    "two documents": b"{} {}",
    "nothing": b"",
    "not a number": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "out of range": b'{"a": 1e999}',
    "more digits than anybody reads": b'{"a": ' + b"9" * 5000 + b"}",
    "too deep": b"[" * 100_000,
    "invalid UTF-8": b'{"whatsapp_chat": "\xff\xfe"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a raw NUL": b'{"whatsapp_chat": "a\x00b"}',
    "an escaped NUL": b'{"whatsapp_chat": "a\\u0000b"}',
    "a NUL in a name": b'{"a\\u0000": 1}',
    "half of a character": b'{"whatsapp_chat": "a\\ud800b"}',
    "a list": b"[]",
    "a text": b'"whatsapp_chat"',
    "a number": b"7",
    "null": b"null",
}


@pytest.fixture(scope="module")
def session_id(module_rows: None) -> str:
    return str(opened(Api(make_token()))["session_id"])


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("kind", sorted(BROKEN_BODIES))
def test_a_broken_body_is_400(kind: str, path: str, api: Api, session_id: str) -> None:
    answer = api.call("POST", path.format(id=session_id), BROKEN_BODIES[kind])
    if kind == "nothing" and "context" in path:  # which needs nothing
        assert answer.status_code == 200
        return
    error_of(answer, 400)
    assert not Message.objects.exists()
    assert not Turn.objects.exists()


def test_a_number_with_too_many_digits_is_named(api: Api) -> None:
    answer = api.call("POST", "memories/recall/", b'{"top_k": ' + b"9" * 5_000 + b"}")
    detail = error_of(answer, 400)["detail"]
    assert detail == (f"The body is not JSON: the number {'9' * 20}… has more than 4,000 digits.")


@pytest.mark.parametrize("path", POSTS)
def test_a_body_of_ten_megabytes_is_413(path: str, api: Api, session_id: str) -> None:
    body = json.dumps({"content": "x" * (10 * MEGABYTE)}).encode()
    assert "3 MB" in error_of(api.call("POST", path.format(id=session_id), body), 413)["detail"]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"]
)
def test_another_media_type_is_415(path: str, content_type: str, api: Api, session_id: str) -> None:
    headers = {"Content_Type": content_type}
    error_of(api.call("POST", path.format(id=session_id), b"a=b", **headers), 415)


def test_another_character_set_is_read_as_utf_8_all_the_same(api: Api) -> None:
    body = json.dumps({"whatsapp_chat": "15550100123@c.us"}).encode()
    for charset in ("utf-8", "latin-1", "bz2_codec", "nonsense"):
        answer = api.call("POST", "sessions/", body, Content_Type=f"{JSON}; charset={charset}")
        assert answer.status_code in (200, 201), (charset, answer.content)


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/png"])
def test_an_answer_that_nobody_can_give_is_406(accept: str, api: Api) -> None:
    error_of(api.get("sessions/", Accept=accept), 406)


def test_a_format_that_is_not_there_is_a_wrong_parameter(api: Api, session_id: str) -> None:
    for path in ("sessions/", f"sessions/{session_id}/card/", f"sessions/{session_id}/"):
        error = error_of(api.get(f"{path}?format=xml"), 400)
        assert (error["code"], error["attr"]) == ("invalid_choice", "format")
        assert "json" in error["detail"]


WRONG_FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("sessions/", {}, "whatsapp_chat"),
    ("sessions/", {"whatsapp_chat": ""}, "whatsapp_chat"),
    ("sessions/", {"whatsapp_chat": None}, "whatsapp_chat"),
    ("sessions/", {"whatsapp_chat": 7}, "whatsapp_chat"),
    ("sessions/", {"whatsapp_chat": ["a@c.us"]}, "whatsapp_chat"),
    ("sessions/", {"whatsapp_chat": "a b@c.us"}, "whatsapp_chat"),
    ("sessions/", {"whatsapp_chat": "x" * 256}, "whatsapp_chat"),
    ("sessions/", {"whatsapp_chat": "a@c.us", "colour": "red"}, "colour"),
    ("chat/", {"whatsapp_chat": "a@c.us"}, "content"),
    ("chat/", {"whatsapp_chat": "a@c.us", "content": 7}, "content"),
    ("chat/", {"whatsapp_chat": "a@c.us", "content": None}, "content"),
    ("chat/", {"whatsapp_chat": "a@c.us", "content": "x" * 70_000}, "content"),
    ("chat/", {"whatsapp_chat": "a@c.us", "content": "x", "stream": "perhaps"}, "stream"),
    ("sessions/{id}/context/", {"query": 7}, "query"),
    ("sessions/{id}/context/", {"max_tokens": -1}, "max_tokens"),
    ("sessions/{id}/context/", {"max_tokens": 10**30}, "max_tokens"),
    ("sessions/{id}/context/", {"max_tokens": "many"}, "max_tokens"),
    ("sessions/{id}/messages/", {}, "messages"),
    ("sessions/{id}/messages/", {"messages": {}}, "messages"),
    ("sessions/{id}/messages/", {"messages": ["x"]}, "messages.0"),
]
WRONG_MESSAGES: list[tuple[dict[str, Any], str]] = [
    ({"content": "x"}, "role"),
    ({"role": "user"}, "content"),
    ({"role": "robot", "content": "x"}, "role"),
    ({"role": "user", "content": 7}, "content"),
    ({"role": "user", "content": None}, "content"),
    ({"role": "user", "content": True}, "content"),
    ({"role": "user", "content": "x", "timestamp": "yesterday"}, "timestamp"),
    ({"role": "user", "content": "x", "timestamp": 1768046400}, "timestamp"),
    ({"role": "user", "content": "x", "timestamp": "2026-02-31T00:00:00Z"}, "timestamp"),
    ({"role": "user", "content": "x", "timestamp": "9999-12-31T23:59:59-12:00"}, "timestamp"),
    ({"role": "user", "content": "x", "timestamp": "9999-12-31T23:59:59Z"}, "timestamp"),
    ({"role": "user", "content": "x", "timestamp": "0001-01-01T00:00:00Z"}, "timestamp"),
    ({"role": "user", "content": "x", "metadata": []}, "metadata"),
    ({"role": "user", "content": "x", "metadata": "x"}, "metadata"),
    ({"role": "user", "content": "x", "sender": "x" * 256}, "sender"),
    ({"role": "user", "content": "x", "message_id": SESSION}, "message_id"),
]


@pytest.mark.parametrize(("path", "body", "attr"), WRONG_FIELDS)
def test_a_wrong_field_is_400_and_named(
    path: str, body: dict[str, Any], attr: str, api: Api, session_id: str
) -> None:
    error = error_of(api.post(path.format(id=session_id), body), 400)
    assert error["attr"] == attr
    assert not Message.objects.exists()
    assert Chat.objects.count() == 1


@pytest.mark.parametrize(("wrong", "attr"), WRONG_MESSAGES)
def test_a_wrong_message_is_400_and_named_and_none_is_stored(
    wrong: dict[str, Any], attr: str, api: Api, session_id: str
) -> None:
    good = {"role": "user", "content": "x"}
    answer = api.post(f"sessions/{session_id}/messages/", {"messages": [good, wrong]})
    assert error_of(answer, 400)["attr"] == f"messages.1.{attr}"
    assert not Message.objects.exists()


@pytest.mark.parametrize("path", GETS)
@pytest.mark.parametrize(
    "query",
    [
        *(
            "limit=0",
            "limit=-1",
            "limit=1001",
            "limit=" + "9" * 50,
            "limit=ten",
            "limit=",
            "limit=1.5",
        ),
        *("cursor=x", "cursor=", "cursor=%00", "cursor=e30", "cursor=W10", "cursor=W1tdLDFd"),
        *("cursor=W1sieCJdLHRydWVd", "cursor=W1siYSIsImIiXSx0cnVlXQ", "cursor=%D7%90"),
        *("colour=red", "Limit=1", "order_by=content", "chat__id=1"),
    ],
)
def test_a_wrong_or_unknown_parameter_is_400(
    path: str, query: str, api: Api, session_id: str
) -> None:
    error = error_of(api.get(f"{path.format(id=session_id)}?{query}"), 400)
    assert error["attr"] == query.split("=")[0]


@pytest.mark.parametrize(
    "query",
    [
        *("sessions/?status=asleep", "sessions/?since=yesterday", "sessions/?since=2026-13-01"),
        *("sessions/?whatsapp_chat=a%00b", "chats/?is_group=perhaps", "chats/?whatsapp_chat=%00"),
        "sessions/{id}/messages/?before=soon",
        "sessions/{id}/messages/?before=9999-12-31T23:59:59-12:00",
    ],
)
def test_a_filter_that_makes_no_sense_is_400(query: str, api: Api, session_id: str) -> None:
    path = query.format(id=session_id)
    answer = api.get(path)
    if "is_group" in path:  # django-filter takes what is no boolean for none
        assert answer.status_code in (200, 400)
        return
    assert error_of(answer, 400)["attr"] == path.split("?")[1].split("=")[0]


@pytest.mark.parametrize(
    "path",
    [
        *("sessions/x/", "sessions/0b0e7c1e/", "turns/1/", "turns/%00/", "chats/a%00b@c.us/"),
        *("sessions/" + "9" * 3000 + "/", f"sessions/{SESSION.upper()}/messages/"),
        *("memories/x/", "memories/1/", "memories/%00/", "receipts/x/"),
    ],
)
def test_what_is_no_id_is_404(path: str, api: Api) -> None:
    error_of(api.get(path), 404)


def test_a_chat_that_is_no_id_is_400_and_told_how_to_write_it(api: Api) -> None:
    error = error_of(api.get("chats/%FF/"), 400)
    assert error["attr"] == "whatsapp_chat"
    assert "15550100123@c.us" in error["detail"]


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb", "\xd7\xaa"])
def test_a_key_that_is_none_is_400(key: str, api: Api) -> None:
    body = {"whatsapp_chat": "15550100123@c.us"}
    error = error_of(api.post("sessions/", body, Idempotency_Key=key), 400)
    assert error["attr"] == "Idempotency-Key"
    assert not ChatSession.objects.exists()


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    path=st.sampled_from(POSTS),
    body=st.dictionaries(
        st.sampled_from(
            ["whatsapp_chat", "content", "messages", "query", "max_tokens", "stream", "x"]
        ),
        JSON_VALUES,
    ),
)
def test_whatever_comes_is_answered_and_never_500(
    path: str, body: dict[str, Any], api: Api, session_id: str
) -> None:
    answer = api.post(
        path.format(id=session_id), {**body, "stream": False} if "stream" in body else body
    )
    assert answer.status_code < 500, answer.content
    if answer.status_code >= 400:
        error_of(answer, answer.status_code)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(raw=st.binary(max_size=200))
def test_whatever_bytes_come_are_answered_and_never_500(
    raw: bytes, api: Api, session_id: str
) -> None:
    for path in POSTS:
        answer = api.call("POST", path.format(id=session_id), raw)
        assert answer.status_code < 500, answer.content


@pytest.mark.parametrize(
    ("path", "body", "attr", "detail"),
    [
        (
            *("memories/recall/", {"query": "x", "sources": ["memory"]}, "sources.0"),
            '"memory" is not one of memories, messages.',
        ),
        (
            *("memories/recall/", {"query": "x", "tags": "payments"}, "tags"),
            "It must be a JSON list, not a text.",
        ),
        (
            "memories/batch/",
            {"memories": {}},
            "memories",
            "It must be a JSON list, not a JSON object.",
        ),
        (
            *("memories/", {"content": "x", "visibility": "all"}, "visibility"),
            '"all" is not one of owner, chat, public.',
        ),
    ],
)
def test_an_error_says_what_would_be_right(
    path: str, body: Any, attr: str, detail: str, api: Api
) -> None:
    error = error_of(api.post(path, body), 400)
    assert (error["attr"], error["detail"]) == (attr, detail)


def test_the_error_of_a_filter_lists_its_values(api: Api) -> None:
    wrong = {
        "sessions/?status=asleep": '"asleep" is not one of active, expired, archived.',
        "memories/?visibility=all": '"all" is not one of owner, chat, public.',
        "audit/?actor_kind=zz": '"zz" is not one of staff, api, person, command, system.',
    }
    for path, detail in wrong.items():
        assert error_of(api.get(path), 400)["detail"] == detail
