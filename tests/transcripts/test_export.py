"""What is written can be saved, and is then the same; what has no place in it is told."""

from __future__ import annotations

import itertools
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given, settings, strategies as st
from hypothesis.extra.django import TestCase

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.session_lifecycle import session_end
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.models import Chat, ChatSession, Message
from sessions_app.transcript_files.parse_transcript import MAX_FILE_SIZE, FaultError, FolderError
from sessions_app.transcript_files.transcript_folder import BatchFolder, batch_name
from sessions_app.transcripts.export_transcripts import Conversation, transcripts_export
from sessions_app.transcripts.status import folder_validate
from tests.transcripts.conftest import Batches, run, said, stored
from tests.unit.transcripts.test_format import SAID
from tests.world import CLIENT, OTHER_CLIENT, World, message_from


def conversation(*roles_and_contents: tuple[str, str]) -> Conversation:
    """A stored session of these messages."""
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="console")
    now = timezone.now()
    session = ChatSession.objects.create(chat=chat, created_at=now, last_active=now)
    ChatMemoryService().add_messages(
        conversation_id=session.pk,
        messages=[NewMessage(role, text, now) for role, text in roles_and_contents],
    )
    return Conversation(chat, session)


class RoundTrip(TestCase):
    """Through the command, as people do it."""

    @settings(max_examples=20, deadline=None)
    @given(st.lists(st.tuples(SAID, SAID), min_size=1, max_size=7), st.sampled_from([2, 4, 100]))
    def test_an_export_can_be_saved_again(self, pairs: list[tuple[str, str]], size: int) -> None:
        messages = said(*itertools.chain.from_iterable(pairs))
        session = conversation(*messages).session
        assert session is not None
        with tempfile.TemporaryDirectory() as folder:
            place = ("--dir", folder)
            exported = run("export", "--session", session.pk, "--batch-size", size, *place)
            assert exported.code == 0
            # Exchanges that are repeated where one batch ends are left to people.
            assert run("validate", "--append", *place).code == 0
            saved = run("save", "--append", "--chat", OTHER_CLIENT, "--json", *place)
            assert saved.report["added"] == len(messages)
            assert list(Path(folder).iterdir()) == []
        assert stored(chat__whatsapp_chat=OTHER_CLIENT) == messages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def export(whose: Conversation, folder: Path, **changes: Any) -> list[tuple[int, str, str]]:
    """Export; returns what was left out."""
    exported = transcripts_export(conversation=whose, path=folder, **changes)
    return [(left["order_num"], left["role"], left["reason"]) for left in exported.left_out]


def read(folder: Path) -> str:
    return "".join(path.read_text() for path in sorted(folder.iterdir()))


def test_an_export_is_redacted_on_request(db: None, folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / batch_name(1)).write_text("User: I am dana@shop.example\nAssistant: Hello\n")
    assert run("save", "--dir", source, "--chat", CLIENT).code == 0
    ran = run("export", "--dir", folder, "--chat", CLIENT, "--redact")
    assert "redacted" in ran.out
    assert read(folder) == "User: I am [email]\nAssistant: Hello\n"


def test_what_has_no_place_is_left_out_and_told(db: None, folder: Path) -> None:
    whose = conversation(
        *(("assistant", "Welcome"), ("user", "unanswered"), ("user", "Price?")),
        *(("tool", "{}"), ("assistant", "40"), ("assistant", "or 50"), ("system", "s")),
        *(("summary", "all of it"), ("user", " "), ("assistant", "?"), ("user", "last")),
    )
    assert export(whose, folder) == [
        (1, "assistant", "no_question"),
        (2, "user", "unanswered"),
        (4, "tool", "other_role"),
        (6, "assistant", "no_question"),
        (7, "system", "other_role"),
        (8, "summary", "other_role"),
        (9, "user", "blank"),
        (10, "assistant", "no_question"),
        (11, "user", "unanswered"),
    ]
    assert read(folder) == "User: Price?\nAssistant: 40\n"


def test_a_burst_is_written_by_turns(world: World, folder: Path) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    world.work()
    assert export(Conversation(world.chat(CLIENT)), folder) == []
    assert read(folder) == (
        "User: one\nAssistant: answer to: one\nUser: two\nAssistant: answer to: two\n"
    )


def test_a_chat_is_written_with_all_its_sessions(world: World, folder: Path) -> None:
    world.say(CLIENT, "one")
    session_end(session=world.session(CLIENT), at=timezone.now())
    world.say(CLIENT, "two")
    export(Conversation(world.chat(CLIENT)), folder)
    assert "one" in read(folder)
    assert "two" in read(folder)


def test_what_was_exported_is_recognised_as_stored(db: None, batches: Batches) -> None:
    whose = conversation(*said("a", "b", "c", "d"), ("summary", "s"), ("user", "waiting"))
    assert whose.session is not None
    transcripts_export(conversation=whose, path=batches.path)
    saved = run("save", "--session", whose.session.pk, "--dir", batches.path, "--json").report
    assert (saved["added"], saved["overlap"]) == (0, 4)


def test_batches_have_the_size_that_is_asked_for(db: None, folder: Path) -> None:
    export(conversation(*said(*"abcdefgh")), folder, messages_a_batch=6)
    assert [path.read_text().count("User:") for path in sorted(folder.iterdir())] == [3, 1]


@pytest.mark.slow
def test_batches_stay_below_the_largest_file(db: None, folder: Path) -> None:
    large = "x" * (MAX_FILE_SIZE // 2)
    whose = conversation(*said(large, "a", large, "b", large + large, "c", "d", "e"))
    assert [reason for *_, reason in export(whose, folder)] == ["too_large", "too_large"]
    assert folder_validate(folder=BatchFolder(folder)).valid
    assert len(list(folder.iterdir())) == 3 - 1


def test_nothing_is_written_over(db: None, folder: Path) -> None:
    whose = conversation(*said("a", "b"))
    export(whose, folder)
    with pytest.raises(FolderError, match="nothing is written over"):
        export(whose, folder)


def test_files_are_for_their_owner_alone(db: None, folder: Path) -> None:
    export(conversation(*said("a", "b")), folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / batch_name(1)).stat().st_mode) == 0o600


def test_a_name_that_is_taken_meanwhile_leaves_nothing_of_ours(db: None, folder: Path) -> None:
    whose = conversation(*said("a", "b", "c", "d"))

    def take(_step: str, done: int, total: int) -> None:
        if done == total:
            (folder / batch_name(1)).write_text("somebody's")

    with pytest.raises(FaultError, match="None of them is there"):
        export(whose, folder, messages_a_batch=2, progress=take)
    assert [path.read_text() for path in folder.iterdir()] == ["somebody's"]


def test_what_a_killed_export_left_is_removed(db: None, folder: Path) -> None:
    folder.mkdir()
    (folder / ".chat_memory_batch_007.txt.part").write_text("half")
    export(conversation(*said("a", "b")), folder)
    assert [path.name for path in folder.iterdir()] == [batch_name(1)]


def test_the_audit_log_tells_of_the_export(db: None, folder: Path) -> None:
    export(conversation(*said("a", "b")), folder)
    event = AuditEvent.objects.get(action="transcript.export")
    assert event.details == {"files": 1, "messages": 2, "left_out": 0}


def test_revoked_messages_and_their_answers_are_left_out(world: World, folder: Path) -> None:
    world.say(CLIENT, "one")
    Message.objects.filter(role="user").update(content="", revoked_at=timezone.now())
    world.say(CLIENT, "two")
    left = export(Conversation(world.chat(CLIENT)), folder)
    assert [reason for *_, reason in left] == ["blank", "no_question"]
    assert "answer to: one" not in read(folder)


def test_strict_tells_by_the_exit_code_that_something_was_left_out(db: None, folder: Path) -> None:
    whose = conversation(*said("a", "b"), ("tool", "t"))
    assert whose.session is not None
    options = ("--session", whose.session.pk, "--dir")
    ran = run("export", *options, folder)
    assert ran.code == 0
    assert "Left out: message 3 of session" in ran.errors
    assert run("export", *options, folder.with_name("other"), "--strict").code == 1
