"""Saving a folder of batches: all of it or nothing, never twice, and cleaned up last."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.conversations.message_store import ConversationNotFoundError
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat, ChatSession, Message, TranscriptBatch
from sessions_app.models.sessions import SessionStatus
from sessions_app.transcript_files.backups import MANIFEST
from sessions_app.transcript_files.parse_transcript import FolderError, Problem
from sessions_app.transcript_files.transcript_folder import BatchFolder, batch_name
from sessions_app.transcripts.export_transcripts import DEFAULT_CHAT, Target
from tests.transcripts.conftest import Batches, said, stored
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

Places = list[tuple[str, str, int | None]]


def places(problems: Sequence[Problem]) -> Places:
    return [(problem.code, problem.file, problem.line) for problem in problems]


def test_batches_become_messages_and_the_files_are_backed_up_and_removed(batches: Batches) -> None:
    first = batches.put(1, "Hello", "Good morning").read_bytes()
    second = batches.put(2, "Price?\nUser: yes", "  40 ₪ 🙂\n\n").read_bytes()
    saved = batches.save()
    assert stored() == said("Hello", "Good morning", "Price?\nUser: yes", "  40 ₪ 🙂\n\n")
    assert (saved.files, saved.added, saved.cleaned) == (2, 4, 2)
    assert batches.names == []
    assert batches.backed_up() == {batch_name(1): first, batch_name(2): second}
    session = ChatSession.objects.get(pk=saved.session_id)
    assert session.whatsapp_chat == DEFAULT_CHAT
    assert (session.message_counter, session.status) == (4, SessionStatus.ACTIVE)
    assert session.total_tokens == sum(Message.objects.values_list("tokens", flat=True))


def test_the_backup_is_for_its_owner_alone_and_lists_what_it_holds(batches: Batches) -> None:
    batches.put(1, "Hello", "Good morning")
    (backup,) = batches.save().backups
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o700
    for path in Path(backup).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (entry,) = json.loads((Path(backup) / MANIFEST).read_text())["files"]
    assert entry["name"] == batch_name(1)


def test_the_next_batches_go_on_by_number_or_begin_again_at_one(batches: Batches) -> None:
    batches.put(1, "a", "b")
    batches.save()
    batches.put(2, "c", "d")
    batches.save()
    batches.put(1, "e", "f")
    batches.put(2, "g", "h")
    assert batches.save().added == 4
    assert "".join(content for _, content in stored()) == "abcdefgh"
    assert ChatSession.objects.count() == 1


def test_all_files_are_checked_before_anything_is_stored(batches: Batches) -> None:
    batches.put(1, "a", "b")
    batches.put_bytes(2, b"Assistant: x\n")
    batches.put_bytes(3, b"User:x\nAssistant: y\n")
    assert places(batches.refused()) == [
        ("starts_with_user", batch_name(2), 1),
        ("too_few_messages", batch_name(2), 1),
        ("spacing", batch_name(3), 1),
    ]


@pytest.mark.parametrize(
    ("names", "problems"),
    [
        (["001", "003"], [("number_missing", "chat_memory_batch_003.txt", None)]),
        (["001", "0001"], [("number_twice", "chat_memory_batch_001.txt", None)]),
        (["000", "001"], [("number", "chat_memory_batch_000.txt", None)]),
        (["001", "2"], [("file_name", "chat_memory_batch_2.txt", None)]),
        (["002"], [("gap", "chat_memory_batch_002.txt", None)]),
    ],
)
def test_numbers_have_no_gaps(batches: Batches, names: list[str], problems: Places) -> None:
    for name in names:
        (batches.path / f"chat_memory_batch_{name}.txt").write_bytes(b"User: a\nAssistant: b\n")
    assert places(batches.refused()) == problems


def test_numbers_are_sorted_as_numbers_beyond_999(batches: Batches) -> None:
    for number in range(1, 1_011):
        batches.put(number, f"question {number}", f"answer {number}")
    batches.save()
    assert [content for role, content in stored() if role == "user"] == [
        f"question {number}" for number in range(1, 1_011)
    ]


def test_a_gap_after_what_was_saved_is_refused(batches: Batches) -> None:
    batches.put(1, "a", "b")
    batches.save()
    batches.put(3, "e", "f")
    problem = batches.refused_for()
    assert problem.code == "gap"
    assert "The last batch saved is chat_memory_batch_001.txt" in problem.what
    assert batches.names == [batch_name(3)]


def test_what_is_stored_as_a_whole_is_added_to_nothing_and_cleaned_up(batches: Batches) -> None:
    batches.put(1, "a", "b", "c", "d")
    batches.save()
    batches.put(1, "a", "b", "c", "d")
    saved = batches.save()
    assert (saved.overlap, saved.added, saved.cleaned) == (4, 0, 1)
    assert len(stored()) == 4
    assert len(list(batches.dependencies.backups.root.iterdir())) == 2


def test_a_changed_message_is_refused_with_its_place(batches: Batches) -> None:
    """Content integrity: it matches the live transcript exactly."""
    batches.put(1, "a", "b", "c", "d")
    batches.save()
    batches.put(1, "a\nand more", "b", "c", "d")
    batches.put(2, "e", "f")
    problem = batches.refused_for()
    assert (problem.code, problem.rule) == ("not_exact", 7)
    assert (problem.file, problem.line) == (batch_name(1), 1)
    assert "message 1 of session" in problem.what
    assert len(stored()) == 4
    assert batches.names == [batch_name(1), batch_name(2)]


def test_a_saved_number_with_another_content_is_refused(batches: Batches) -> None:
    batches.put(1, "a", "b")
    batches.put(2, "c", "d")
    batches.save()
    batches.put(2, "x", "y")
    assert "saved already, with another content" in batches.refused_for().what


def test_a_live_conversation_is_recognised_by_turns(world: World, batches: Batches) -> None:
    """The answers of a burst are stored after all its messages."""
    batches.target = Target(whatsapp_chat=CLIENT)
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "two"))
    world.work()
    assert [message.role for message in world.messages(CLIENT)] == ["user"] * 2 + ["assistant"] * 2
    batches.put(1, "one", "answer to: one", "two", "answer to: two", "three", "answer three")
    saved = batches.save()
    assert (saved.overlap, saved.added) == (4, 2)
    assert [message.content for message in world.messages(CLIENT)][-2:] == ["three", "answer three"]


def test_a_session_by_its_id(world: World, batches: Batches) -> None:
    world.say(CLIENT, "one")
    session = world.session(CLIENT)
    batches.target = Target(session_id=session.pk)
    batches.put(1, "two", "answer")
    assert batches.save().session_id == str(session.pk)
    assert world.messages(CLIENT)[-1].content == "answer"


def test_a_session_that_is_not_there_is_told(batches: Batches) -> None:
    batches.put(1, "a", "b")
    with pytest.raises(ConversationNotFoundError):
        batches.save(target=Target(session_id=Chat().pk))


def test_a_chat_whose_memory_is_off_takes_nothing(batches: Batches) -> None:
    Chat.objects.create(whatsapp_chat=DEFAULT_CHAT, provider="console", memory_enabled=False)
    batches.put(1, "a", "b")
    assert places(batches.refused()) == [("memory_off", batch_name(1), None)]


def test_an_archived_session_takes_nothing(world: World, batches: Batches) -> None:
    world.say(CLIENT, "one")
    session = world.session(CLIENT)
    ChatSession.objects.update(status=SessionStatus.ARCHIVED, expired_at=timezone.now())
    batches.put(1, "a", "b")
    found = places(batches.refused(target=Target(session_id=session.pk)))
    assert found == [("archived", batch_name(1), None)]


def test_nothing_is_put_before_a_waiting_answer(world: World, batches: Batches) -> None:
    world.receive(message_from(CLIENT, "one"))
    batches.put(1, "a", "b")
    assert places(batches.refused(target=Target(whatsapp_chat=CLIENT))) == [
        ("answering", batch_name(1), None)
    ]


def test_other_files_are_left_alone_and_links_are_refused(batches: Batches, tmp_path: Path) -> None:
    batches.put(1, "a", "b")
    (batches.path / "notes.md").write_text("mine")
    (batches.path / "folder").mkdir()
    saved = batches.save()
    assert saved.left_alone == ["folder", "notes.md"]
    assert batches.names == ["folder", "notes.md"]
    target = tmp_path / "elsewhere.txt"
    target.write_bytes(b"User: c\nAssistant: d\n")
    (batches.path / batch_name(2)).symlink_to(target)
    assert batches.refused_for().code == "no_file"
    assert target.exists()


def test_an_empty_folder_is_nothing_to_save_and_a_missing_one_is_told(batches: Batches) -> None:
    assert batches.save().files == 0
    with pytest.raises(FolderError) as error:
        batches.save(folder=BatchFolder(batches.path / "nowhere"))
    assert error.value.usage


def test_old_backups_go_after_their_retention(batches: Batches) -> None:
    now = timezone.now()
    batches.put(1, "a", "b")
    batches.save(now=now - timedelta(days=31))
    batches.put(2, "c", "d")
    (kept,) = batches.save(now=now).backups
    (batches.dependencies.backups.root / "mine").mkdir()
    assert batches.dependencies.backups.prune(before=now - timedelta(days=30)) == 0
    left = sorted(path.name for path in batches.dependencies.backups.root.iterdir())
    assert left == [Path(kept).name, "mine"]


def test_the_audit_log_tells_of_the_save_without_its_words(batches: Batches) -> None:
    batches.put(1, "secret words", "b")
    batches.save()
    event = AuditEvent.objects.get(action="transcript.save")
    assert event.details == {"files": 1, "added": 2, "overlap": 0}


def test_many_messages_in_one_file(batches: Batches) -> None:
    batches.put(1, *(f"text {number}" for number in range(2_000)))
    batches.save()
    assert stored() == said(*(f"text {number}" for number in range(2_000)))


def test_of_two_merged_chats_it_is_known_what_was_saved(batches: Batches) -> None:
    batches.put(1, "a", "b")
    batches.save(target=Target(whatsapp_chat=CLIENT))
    batches.put(1, "c", "d")
    batches.save(target=Target(whatsapp_chat=OTHER_CLIENT))
    with transaction.atomic():
        kept = chat_merge(*Chat.objects.all())
    assert TranscriptBatch.objects.filter(chat=kept).count() == 2
