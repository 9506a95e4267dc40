"""Whatever is wrong with a file, the rest comes in, and it is told what did not and why."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from sessions_app.legacy_import.session_folder import MAX_BYTES
from sessions_app.models import Chat, ChatSession, Message
from sessions_app.models.chats import Limits
from tests.recovery.conftest import Import, is_in
from tests.recovery.old_files import CLIENT, NOW, OTHER_CLIENT, OldFolder, message, new_id

pytestmark = pytest.mark.django_db

BROKEN_FILES = {
    "empty": b"",
    "cut off": b'{"session_id": "a", "what',
    "not utf-8": b'{"session_id": "\xff"}',
    "utf-16": '{"session_id": "a"}'.encode("utf-16"),
    "a list": b"[]",
    "a text": b'"session"',
    "null": b"null",
    "nested without end": b"[" * 200_000,
    "a number that is none": b'{"session_id": NaN}',
    "a number without end": b'{"session_id": ' + b"9" * 5_000 + b"}",
    "too large": b" " * (MAX_BYTES + 1),
}

WRONG_SESSION_FIELDS: dict[str, dict[str, Any]] = {
    "no id": {"session_id": ...},
    "id is a number": {"session_id": 5},
    "id is too long": {"session_id": "x" * 256},
    "no chat": {"whatsapp_chat": ...},
    "chat is null": {"whatsapp_chat": None},
    "chat is blank": {"whatsapp_chat": "  "},
    "chat is a list": {"whatsapp_chat": [CLIENT]},
    "chat holds NUL": {"whatsapp_chat": "1555\x00@c.us"},
    "chat holds a line": {"whatsapp_chat": "1555\n@c.us"},
    "chat holds half a character": {"whatsapp_chat": "\ud800@c.us"},
    "name is a number": {"client_name": 1},
    "no created_at": {"created_at": ...},
    "created_at is a number": {"created_at": 1768737600},
    "no such day": {"created_at": "2026-02-30T10:00:00"},
    "not a date": {"last_active": "yesterday"},
    "date before time": {"last_active": "0001-01-01T00:00:00+14:00"},
    "date at the end of time": {"last_active": "9999-12-31T23:59:59-14:00"},
    "active in the future": {"last_active": "2036-01-01T00:00:00Z"},
    "ids are a text": {"message_ids": "abc"},
    "an id is a number": {"message_ids": [1]},
    "messages are an object": {"messages": {}},
    "counter is a text": {"message_counter": "5"},
    "counter is true": {"message_counter": True},
    "counter is negative": {"message_counter": -1},
    "absurd tokens": {"total_tokens": 10**30},
    "unknown field holds NUL": {"note": ["\x00"]},
    "unknown name is half a character": {"\udfff": 1},
}

WRONG_MESSAGE_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "ERR-SESSION-004 unknown role": ({"role": "admin"}, "role: not one of user"),
    "no role": ({"role": ...}, "role: missing"),
    "no content": ({"content": ...}, "content: missing"),
    "content is null": ({"content": None}, "content: missing"),
    "content is an object": ({"content": {"text": "hi"}}, "content: not a text"),
    "content holds NUL": ({"content": "a\x00b"}, "content: holds a NUL"),
    "content holds half a character": ({"content": "a\ud83d"}, "content: holds half a char"),
    "no number": ({"order_num": ...}, "order_num: missing"),
    "number 0": ({"order_num": 0}, "order_num: less than 1"),
    "number is a text": ({"order_num": "2"}, "order_num: not a whole number"),
    "number is absurd": ({"order_num": 2**40}, "order_num: not between"),
    "number is true": ({"order_num": True}, "order_num: not a whole number"),
    "sender is a list": ({"sender": []}, "sender: not a text"),
    "recipient is too long": ({"recipient": "1" * 300}, "recipient: longer than"),
    "no time": ({"timestamp": ..., "received_at": ...}, "timestamp: missing"),
    "wrong time": ({"received_at": "12 o'clock"}, "received_at: not a time"),
    "was_received is a text": ({"was_received": "yes"}, "was_received: neither"),
    "tokens are a float": ({"tokens": 1.5}, "tokens: not a whole number"),
    "path is too long": ({"image_path": "x" * 2000}, "image_path: longer"),
    "unknown field holds NUL": ({"extra": {"a\x00": 1}}, "a field of unknown name"),
    "another's message": ({"session_id": "another"}, "session_id: names another session"),
    "wrong name": ({"message_id": "other"}, "message_id: another one"),
}


def test_err_session_001_a_broken_file_is_skipped_and_the_rest_goes_on(
    old: OldFolder, bring_in: Import, good: str, caplog: pytest.LogCaptureFixture
) -> None:
    for kind, body in BROKEN_FILES.items():
        old.write(f"{kind}.json", body)
    report = bring_in()
    assert is_in(good)
    assert {one["file"] for one in report.skipped} == {f"{kind}.json" for kind in BROKEN_FILES}
    errors = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    expected = ["{file} was skipped: {reason}.".format(**one) for one in report.skipped]
    assert sorted(errors) == sorted(expected)


def test_err_session_001_a_wrong_field_skips(old: OldFolder, bring_in: Import, good: str) -> None:
    for kind, changes in WRONG_SESSION_FIELDS.items():
        session = {
            "session_id": new_id(),
            "whatsapp_chat": CLIENT,
            "created_at": NOW.isoformat(),
            "last_active": NOW.isoformat(),
            "total_tokens": 0,
        }
        merged = {name: value for name, value in {**session, **changes}.items() if value is not ...}
        old.write(f"{kind}.json", json.dumps(merged).encode())
    report = bring_in()
    assert is_in(good)
    assert report.sessions["imported"] == 1
    assert report.sessions["skipped"] == len(WRONG_SESSION_FIELDS)
    assert {one["file"] for one in report.skipped} == {
        f"{kind}.json" for kind in WRONG_SESSION_FIELDS
    }


def test_err_session_003_a_wrong_message_is_skipped_and_its_session_goes_on(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    reasons = {}
    for changes, reason in WRONG_MESSAGE_FIELDS.values():
        session_id = new_id()
        documents = [message(1), message(2, "a private text"), message(3)]
        file = f"messages/{documents[1]['message_id']}.json"
        old.add(documents, session_id=session_id, folder="expired")
        wrong = {**documents[1], "session_id": session_id, **changes}
        old.write(file, {key: value for key, value in wrong.items() if value is not ...})
        reasons[file] = reason

    report = bring_in()

    numbers = Message.objects.values_list("order_num", flat=True)
    assert sorted(numbers) == sorted([1, 3] * len(WRONG_MESSAGE_FIELDS))
    skipped = {one["file"]: one["reason"] for one in report.skipped}
    assert skipped.keys() == reasons.keys()
    for file, reason in reasons.items():
        assert skipped[file].startswith(reason)
    errors = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert len(errors) == len(skipped)
    assert all(any(reason in error for error in errors) for reason in skipped.values())
    assert "private" not in caplog.text


def test_err_session_003_a_broken_message_file_is_skipped(old: OldFolder, bring_in: Import) -> None:
    for kind, body in BROKEN_FILES.items():
        documents = [message(1), message(2)]
        old.add(documents, folder="expired")
        old.write(f"messages/{documents[0]['message_id']}.json", body)
        old.write(f"messages/unlisted {kind}.json", body)
    report = bring_in()
    assert set(Message.objects.values_list("order_num", flat=True)) == {2}
    assert report.messages["skipped"] == 2 * len(BROKEN_FILES)


def test_err_session_003_it_is_named_by_its_place(old: OldFolder, bring_in: Import) -> None:
    held = [message(1), message(2, "a\x00"), message(3)]
    session_id = old.add(message_ids=[], messages=held)
    report = bring_in()
    assert Message.objects.count() == 2
    assert report.skipped[0]["file"] == f"{session_id}.json, message 2"


def test_err_session_005_a_message_without_text_comes_in_with_a_warning(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    documents = [message(1, content=" \n"), message(2)]
    documents[1]["content"] = ""
    session_id = old.add(documents)
    report = bring_in()
    assert set(Message.objects.values_list("content", flat=True)) == {" \n", ""}
    assert set(Message.objects.values_list("tokens", flat=True)) == {0}
    assert report.warnings == {"empty_content": 2}
    assert f"of session {session_id} is without text." in caplog.text


def test_err_session_006_missing_files_leave_gaps_and_are_listed(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    documents = [message(number) for number in (1, 2, 3)]
    gone = [documents[1]["message_id"], new_id(), "../../etc/passwd", ".", ""]
    ids = [documents[0]["message_id"], *gone, documents[2]["message_id"]]
    session_id = old.add([documents[0], documents[2]], message_ids=ids)
    report = bring_in()
    assert not report.skipped
    assert report.messages["missing"] == 5
    assert report.warnings == {"missing_messages": 1}
    (record,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert session_id in record.getMessage()
    assert all(name in record.getMessage() for name in gone)
    session = ChatSession.objects.get()
    assert [one.order_num for one in session.messages.order_by("order_num")] == [1, 3]
    assert session.message_counter == 3


def test_err_session_007_a_chat_id_of_another_form_is_accepted_with_a_warning(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    for form in ("15550100123", "+15550100123@C.US", "15550100123@lid"):
        old.add([message(1)], whatsapp_chat=form)
    report = bring_in()
    chats = {"15550100123@c.us", "15550100123@lid"}
    assert set(Chat.objects.values_list("whatsapp_chat", flat=True)) == chats
    assert report.warnings["unusual_chat_id"] == 1
    assert "unusual WhatsApp chat id, accepted as it is: 15550100123@lid." in caplog.text


@pytest.mark.parametrize("form", ["@bsuid", "@c.us", "a b@c.us", "x@y@c.us", "..", "a/b@c.us"])
def test_a_session_of_no_chat_is_skipped(old: OldFolder, bring_in: Import, form: str) -> None:
    old.add([message(1)], whatsapp_chat=form)
    report = bring_in()
    assert not Chat.objects.exists()
    assert any("15550100123@c.us" in one["reason"] for one in report.skipped)


def test_err_integration_004_times_without_zone_are_utc_and_told_once_a_session(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    naive = "2026-01-18T09:30:00.123456"
    documents = [message(number, timestamp=naive, received_at=naive) for number in (1, 2)]
    session_id = old.add(documents, created_at="2026-01-18 09:00", last_active=naive)
    report = bring_in()
    assert ChatSession.objects.get().last_active.isoformat() == f"{naive}+00:00"
    assert {one.timestamp.isoformat() for one in Message.objects.all()} == {f"{naive}+00:00"}
    assert report.warnings == {"naive_times": 1}
    warned = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1
    assert session_id in warned[0].getMessage()


def test_err_integration_004_other_zones_become_utc(old: OldFolder, bring_in: Import) -> None:
    old.add(created_at="2026-01-18T09:00:00+02:00", last_active="2026-01-18T11:00:00Z")
    report = bring_in()
    assert ChatSession.objects.get().created_at.isoformat() == "2026-01-18T07:00:00+00:00"
    assert not report.warnings


def test_edge_002_a_long_message_is_kept_whole(old: OldFolder, bring_in: Import) -> None:
    old.add([message(1, "x" * 400), message(2), message(3, "y" * 400)])
    report = bring_in(limits=Limits(client=50))
    session = ChatSession.objects.get()
    assert report.warnings == {"long_message": 2}
    assert (session.window_start, session.total_tokens) == (2, 102)


def test_edge_008_the_path_of_an_image_that_is_gone_is_kept_with_a_warning(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    old.write("images/there.jpg", b"")
    documents = [message(1, image_path="images/gone.jpg"), message(2, image_path="\u0001")]
    documents += [message(3, image_path="images/there.jpg")]
    old.add(documents)
    report = bring_in()
    paths = Message.objects.order_by("order_num").values_list("image_path", flat=True)
    assert list(paths) == ["images/gone.jpg", "\u0001", "images/there.jpg"]
    assert report.warnings == {"missing_image": 2}
    assert documents[0]["message_id"] in caplog.text


def test_fields_of_a_session_that_have_no_place_are_named(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    session_id = old.add(colour="a private value")
    report = bring_in()
    assert report.warnings == {"unknown_session_fields": 1}
    assert f"Session {session_id} has fields that are not kept: 'colour'." in caplog.text
    assert "private" not in caplog.text


def test_a_message_of_two_sessions_is_the_firsts(old: OldFolder, bring_in: Import) -> None:
    one = message(1)
    old.add_message(one)
    ids = [one["message_id"]]
    first = old.add(message_ids=ids)
    old.add(message_ids=ids, whatsapp_chat=OTHER_CLIENT, last_active=NOW.isoformat(), folder="")
    report = bring_in()
    assert Message.objects.count() == 1
    assert report.skipped[0]["reason"].startswith("message_id: another session")
    assert is_in(first), "a session, whatever became of its messages"


def test_a_session_in_two_folders_comes_in_once(old: OldFolder, bring_in: Import) -> None:
    session_id = new_id()
    old.add([message(1)], session_id=session_id)
    old.add([message(2)], session_id=session_id, folder="expired")
    told = bring_in(dry_run=True)
    report = bring_in()
    assert (told.sessions["imported"], told.sessions["already_there"]) == (1, 1)
    assert ChatSession.objects.get().status == "expired"
    assert Message.objects.count() == 2
    assert (report.sessions["imported"], report.sessions["already_there"]) == (1, 1)


def test_messages_of_no_session_are_told(old: OldFolder, bring_in: Import, good: str) -> None:
    old.add_message(message(1))
    report = bring_in()
    assert is_in(good)
    assert report.skipped[0]["reason"] == "session_id: missing, and no session lists it"


def test_a_clock_that_is_a_little_ahead_is_no_error(old: OldFolder, bring_in: Import) -> None:
    old.add(last_active=(NOW + timedelta(hours=23)).isoformat())
    assert not bring_in().skipped
