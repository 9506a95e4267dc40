"""Transcripts over HTTP: read, checked, saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat, Message, TranscriptBatch
from sessions_app.transcript_files.transcript_folder import batch_name
from sessions_app.transcripts.export_transcripts import DEFAULT_CHAT
from tests.api.calling import Api, error_of
from tests.transcripts.conftest import run
from tests.world import CLIENT

pytestmark = pytest.mark.django_db
TEXT = "User: Hello\n\nUser is me\nAssistant:  40 ₪ 🙂 \nUser: More?\n\\User: yes\nAssistant: No\n"
SAID = ["Hello\n\nUser is me", " 40 ₪ 🙂 ", "More?\nUser: yes", "No"]
PLAIN = {"Content_Type": "text/plain"}


def plain(api: Api, path: str, text: str | bytes, **headers: str) -> Any:
    raw = text if isinstance(text, bytes) else text.encode()
    return api.call("POST", path, raw, **PLAIN, **headers)


def stored() -> list[str]:
    said = Message.objects.order_by("session__created_at", "order_num")
    return list(said.values_list("content", flat=True))


def test_a_text_becomes_messages_and_comes_back_byte_for_byte(api: Api) -> None:
    answer = plain(api, "transcripts/", TEXT)
    assert answer.status_code == 201, answer.content
    saved = answer.json()
    assert (saved["messages"], saved["added"], saved["overlap"]) == (4, 4, 0)
    assert saved["whatsapp_chat"] == DEFAULT_CHAT
    assert "backups" not in saved
    assert stored() == SAID
    read = api.get(f"sessions/{saved['session_id']}/transcript/")
    assert read["Content-Type"] == "text/plain; charset=utf-8"
    assert read.content.decode() == TEXT
    assert read["Transcript-Left-Out"] == "0"
    actions = AuditEvent.objects.filter(action__startswith="transcript", actor_kind="api")
    assert set(actions.values_list("action", flat=True)) == {"transcript.save", "transcript.export"}


def test_what_cannot_alternate_is_left_out_and_told(api: Api) -> None:
    session = api.post("sessions/", {"whatsapp_chat": CLIENT}).json()["session_id"]
    body = [
        {"role": "user", "content": "One?"},
        {"role": "user", "content": "Two?"},
        {"role": "assistant", "content": "Both."},
    ]
    api.post(f"sessions/{session}/messages/", {"messages": body})
    path = f"sessions/{session}/transcript/"
    read = api.get(path)
    assert read.content == b"User: Two?\nAssistant: Both.\n"
    assert read["Transcript-Left-Out"] == "1"
    told = api.get(path, Accept="application/json").json()
    assert told == api.get(f"{path}?format=json").json()
    assert told["text"].encode() == read.content
    assert told["messages"] == 2
    (left,) = told["left_out"]
    assert (left["order_num"], left["reason"]) == (1, "unanswered")


def test_a_transcript_is_redacted_on_request(api: Api) -> None:
    text = "User: Call +44 7700 900123 on 14.3.2026\nAssistant: Yes\n"
    saved = plain(api, "transcripts/", text).json()
    path = f"sessions/{saved['session_id']}/transcript/"
    read = api.get(f"{path}?redact=true")
    assert read.content == b"User: Call [phone] on 14.3.2026\nAssistant: Yes\n"
    assert read["Transcript-Redacted"] == "true"
    assert api.get(f"{path}?redact=true&format=json").json()["redacted"] is True
    assert AuditEvent.objects.filter(details__redacted=True).count() == 2
    whole = api.get(path)
    assert (whole.content.decode(), whole["Transcript-Redacted"]) == (text, "false")
    assert api.get(f"{path}?redact=perhaps").status_code == 400


@pytest.mark.parametrize(
    ("text", "code", "line", "rule"),
    [
        ("Assistant: hi\nUser: a\nAssistant: b\n", "starts_with_user", 1, 1),
        ("hello\nUser: a\nAssistant: b\n", "starts_with_user", 1, 1),
        ("User: a\nAssistant: b\nUser: c\n", "ends_with_assistant", 3, 3),
        ("User: a\nUser: b\nAssistant: c\n", "alternates", 2, 2),
        ("User: a\nUser: b\nAssistant: c\n", "consecutive", 2, 4),
        ("\n", "too_few_messages", None, 5),
        ("User:a\nAssistant: b\n", "spacing", 1, 6),
        ("User:  \nAssistant: b\n", "blank_message", 1, None),
    ],
)
def test_a_text_that_is_no_transcript_is_refused_with_line_and_rule(
    api: Api, text: str, code: str, line: int | None, rule: int | None
) -> None:
    checked = plain(api, "transcripts/validate/", text)
    assert checked.status_code == 200
    assert checked.json()["valid"] is False
    assert api.post("transcripts/validate/", {"text": text}).json() == checked.json()
    found = [each for each in checked.json()["problems"] if each["code"] == code]
    assert [(each["line"], each["rule"]) for each in found] == [(line, rule)]
    for answer in (plain(api, "transcripts/", text), api.post("transcripts/", {"text": text})):
        assert answer.status_code == 400
        errors = answer.json()["errors"]
        told = next(each for each in errors if each["code"] == code)
        assert told["attr"] == "text"
        if line:
            assert told["detail"].startswith(f"Line {line}")
        if rule:
            assert f"ule {rule}: " in told["detail"]
    assert stored() == []
    assert not Chat.objects.exists()


def test_a_valid_text_is_told_to_be_valid_and_nothing_is_stored(api: Api) -> None:
    for answer in (
        plain(api, "transcripts/validate/", TEXT),
        api.post("transcripts/validate/", {"text": TEXT, "whatsapp_chat": CLIENT}),
    ):
        assert answer.status_code == 200
        told = answer.json()
        assert (told["valid"], told["messages"], told["problems"]) == (True, 4, [])
    assert stored() == []
    assert not Chat.objects.exists()


def test_a_text_that_does_not_go_on_from_what_is_stored_is_refused(api: Api) -> None:
    body = {"text": TEXT, "whatsapp_chat": CLIENT}
    api.post("transcripts/", body)
    other = {**body, "text": TEXT.replace("Hello", "Hallo")}
    assert api.post("transcripts/validate/", other).json()["problems"][0]["code"] == "not_exact"
    error = error_of(api.post("transcripts/", other), 400)
    assert error["code"] == "not_exact"
    assert "--append" not in error["detail"]
    assert len(stored()) == 4


@pytest.mark.parametrize("path", ["transcripts/", "transcripts/validate/"])
def test_a_body_that_makes_no_sense_is_refused(api: Api, path: str) -> None:
    error_of(plain(api, path, b"User: \xff\nAssistant: x\n"), 400)
    error_of(plain(api, path, "User: a\x00\nAssistant: x\n"), 400)
    assert error_of(api.post(path, {}), 400)["attr"] == "text"
    assert error_of(api.post(path, {"text": 5}), 400)["attr"] == "text"
    assert error_of(api.post(path, {"text": "a\x00"}), 400)["attr"] == "text"
    assert error_of(api.post(path, {"text": "a", "whatsapp_chat": 5}), 400)["attr"] == (
        "whatsapp_chat"
    )
    assert error_of(api.post(path, {"text": "a", "colour": 5}), 400)["attr"] == "colour"
    error_of(api.call("POST", path, b"{"), 400)
    error_of(api.call("POST", path, b"x", Content_Type="image/png"), 415)
    error_of(plain(api, path, b"x" * (17 * 1024 * 1024 + 1)), 413)
    assert stored() == []


TALK = "User: hello\nAssistant: hi\nUser: price?\nAssistant: 40\n"


def test_a_text_uses_no_number_of_the_folder(api: Api, tmp_path: Path) -> None:
    """The next batch of the folder was refused, because the text had its number."""
    place = ("--dir", tmp_path, "--chat", "15550100123@c.us")
    (tmp_path / batch_name(1)).write_bytes(b"User: a\nAssistant: b\n")
    assert run("save", *place).code == 0
    body = {"text": TALK, "whatsapp_chat": "15550100123@c.us"}
    assert api.post("transcripts/", body).status_code == 201
    (tmp_path / batch_name(2)).write_bytes(b"User: c\nAssistant: d\n")
    assert run("save", *place).code == 0
    assert list(TranscriptBatch.objects.order_by("id").values_list("number", flat=True)) == [
        1,
        0,
        2,
    ]
    assert {} in Message.objects.values_list("metadata", flat=True)


def test_answers_of_the_api_name_no_file_that_the_caller_never_had(api: Api) -> None:
    """Notes and problems spoke of chat_memory_batch_001.txt."""
    odd = "User: a\r\nAssistant: b\r\nuser: c\r\n"
    for path in ("transcripts/validate/", "transcripts/"):
        answer = api.post(path, {"text": odd})
        assert answer.json()["notes"]
        assert "batch" not in answer.content.decode()
    for bad in ("Assistant: x\n", "User: a\n", "", "User: a\nUser: b\n"):
        checked = api.post("transcripts/validate/", {"text": bad})
        assert checked.json()["problems"]
        assert "file" not in checked.content.decode()
        assert "batch" not in checked.content.decode()
    noted = api.post("transcripts/validate/", {"text": TALK}).json()["notes"]
    assert any("Only the format was checked" in note for note in noted)


def test_the_api_takes_the_decision_too(api: Api) -> None:
    chat = {"whatsapp_chat": "15550100123@c.us"}
    one = {"text": "User: yes\nAssistant: ok\n", **chat}
    api.post("transcripts/", one)
    longer = {"text": one["text"] + TALK, **chat}
    error = error_of(api.post("transcripts/", longer), 400)
    assert error["code"] == "ambiguous"
    assert '"overlap": 2' in error["detail"]
    assert '"append": true' in error["detail"]
    assert "--" not in error["detail"]
    both = api.post("transcripts/", {**longer, "append": True, "overlap": 2})
    assert error_of(both, 400)["attr"] == "overlap"
    saved = api.post("transcripts/", {**longer, "overlap": 2})
    assert (saved.status_code, saved.json()["added"], saved.json()["overlap"]) == (201, 4, 2)
