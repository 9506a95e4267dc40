"""How bodies and addresses are read, for every operation alike."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from memories_app.models import Memory
from sessions_app.models import ChatSession
from tests.api.calling import Api, error_of
from tests.api.test_sessions import opened

pytestmark = pytest.mark.django_db


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


def test_nothing_to_store_is_refused(api: Api) -> None:
    path = f"sessions/{opened(api)['session_id']}/messages/"
    assert error_of(api.post(path, {"messages": []}), 400)["attr"] == "messages"
    assert error_of(api.post("memories/batch/", {"memories": []}), 400)["attr"] == "memories"


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


@pytest.mark.parametrize("word", ["Token", "Bearer", "bearer", "TOKEN"])
def test_both_words_for_tokens_are_taken(api: Api, word: str) -> None:
    secret = api.headers["Authorization"].split()[1]
    assert Api(None).get("sessions/", Authorization=f"{word} {secret}").status_code == 200
