"""Wrong input is refused in the one shape, with what is wrong, and stores nothing."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from memories_app.models import Memory
from sessions_app.models import Chat, ChatSession, Message
from tests.api.calling import JSON, Api, api_with, error_of
from tests.api.test_sessions import opened

pytestmark = pytest.mark.django_db

SESSION = "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"
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
    return str(opened(api_with())["session_id"])


def test_a_number_with_too_many_digits_is_named(api: Api) -> None:
    answer = api.call("POST", "memories/recall/", b'{"top_k": ' + b"9" * 5_000 + b"}")
    detail = error_of(answer, 400)["detail"]
    assert detail == (f"The body is not JSON: the number {'9' * 20}… has more than 4,000 digits.")


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
def test_an_error_says_what_is_right(
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


# How bodies and addresses are read, for every operation alike.


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'{"whatsapp_chat": "a@c.us", "whatsapp_chat": "b@c.us"}', "whatsapp_chat"),
        (b'{"whatsapp_chat": "a@c.us", "x": {"deep": 1, "deep": 1}}', "deep"),
    ],
)
def test_a_name_that_comes_twice_is_refused(api: Api, raw: bytes, name: str) -> None:
    error = error_of(api.call("POST", "sessions/", raw), 400)
    assert (error["code"], error["attr"]) == ("repeated", name)
    assert name in error["detail"]
    assert not ChatSession.objects.exists()


@pytest.mark.parametrize("path", ["sessions/", "memories/", "memories/import/", "transcripts/"])
def test_a_compressed_body_is_refused_as_such(api: Api, path: str) -> None:
    body = gzip.compress(json.dumps({"content": "a"}).encode())
    answer = api.call("POST", path, body, Content_Encoding="gzip")
    error = error_of(answer, 415)
    assert (error["code"], error["attr"]) == ("unsupported_media_type", None)
    assert "Content-Encoding" in error["detail"]
    assert not Memory.objects.exists()


def test_an_encoding_that_changes_nothing_is_taken(api: Api) -> None:
    body = {"content": "We open at 9"}
    assert api.post("memories/", body, Content_Encoding="identity").status_code == 201


@pytest.mark.parametrize(
    ("body", "kind"), [([], "a list"), ("x", "a text"), (7, "a number"), (True, "true or false")]
)
@pytest.mark.parametrize("path", ["sessions/", "memories/", "memories/recall/", "chat/"])
def test_a_body_that_is_no_object_is_told_so(api: Api, path: str, body: Any, kind: str) -> None:
    error = error_of(api.call("POST", path, json.dumps(body).encode()), 400)
    assert error["attr"] is None
    assert error["detail"] == f"The body must be a JSON object, not {kind}."


def test_what_is_no_object_within_the_body_has_its_place(api: Api) -> None:
    path = f"sessions/{opened(api)['session_id']}/messages/"
    error = error_of(api.post(path, {"messages": [[]]}), 400)
    assert error["attr"] == "messages.0"
    assert error["detail"] == "It must be a JSON object, not a list."
    message = {"role": "user", "content": "a", "metadata": []}
    error = error_of(api.post(path, {"messages": [message]}), 400)
    assert (error["attr"], error["detail"]) == (
        "messages.0.metadata",
        "It must be a JSON object, not a list.",
    )
    kinds: list[tuple[Any, str]] = [(7, "a number"), ("x", "a text"), ([], "a list")]
    for metadata, kind in kinds:
        error = error_of(api.post("memories/", {"content": "a", "metadata": metadata}), 400)
        assert error["detail"] == f"It must be a JSON object, not {kind}."


def test_a_bad_time_has_one_code_everywhere(api: Api) -> None:
    path = f"sessions/{opened(api)['session_id']}/messages/"
    message = {"role": "user", "content": "a", "timestamp": "yesterday"}
    found = [
        error_of(answer, 400)
        for answer in (
            api.post(path, {"messages": [message]}),
            api.get(f"{path}?before=yesterday"),
            api.get("sessions/?since=yesterday"),
            api.get("memories/?since=yesterday"),
            api.get("audit/?until=yesterday"),
            api.post("memories/", {"content": "a", "expires_at": "yesterday"}),
        )
    ]
    assert {each["code"] for each in found} == {"moment"}


def test_ids_are_read_in_upper_case_too(api: Api) -> None:
    session_id = opened(api)["session_id"]
    assert api.get(f"sessions/{session_id.upper()}/").json()["session_id"] == session_id
    memory_id = api.post("memories/", {"content": "We open at 9"}).json()["memory_id"]
    assert api.get(f"memories/{memory_id.upper()}/").json()["memory_id"] == memory_id
