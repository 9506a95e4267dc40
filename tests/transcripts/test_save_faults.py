"""What goes wrong in the middle of a save: files and messages are there, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from sessions_app.conversations.epochs import Scopes, forgetting_begin
from sessions_app.models import ChatSession, Message, TranscriptBatch
from sessions_app.transcript_files.backups import VERIFYING, Backups
from sessions_app.transcript_files.parse_transcript import BusyError, FaultError, RefusedError
from sessions_app.transcript_files.transcript_folder import CHECKING, BatchFolder, batch_name
from sessions_app.transcripts.save import CLEANING_UP, STORING
from tests.transcripts.conftest import Batches, stored


def test_two_at_once_one_works_and_the_other_says_so(batches: Batches) -> None:
    batches.put(1, "a", "b")
    with BatchFolder(batches.path).locked(), pytest.raises(BusyError, match="at work in"):
        batches.save()
    assert stored() == []
    assert batches.save().added == 2


def fault(at: str) -> Any:
    """A progress that fails in a step, as a power cut or a bug there would."""

    def progress(step: str, _done: int, _total: int) -> None:
        if step == at:
            raise RuntimeError(at)

    return progress


@pytest.mark.parametrize("step", [CHECKING, STORING, "Backing up", VERIFYING, CLEANING_UP])
def test_after_a_fault_at_any_step_the_next_run_ends_it(batches: Batches, step: str) -> None:
    for number in (1, 2, 3):
        batches.put(number, f"question {number}", f"answer {number}")
    names = batches.names
    with pytest.raises(RuntimeError):
        batches.save(dependencies={"progress": fault(step)})
    assert batches.names == names
    assert len(stored()) == (0 if step in (CHECKING, STORING) else 6)
    saved = batches.save()
    assert len(stored()) == 6
    assert saved.saved_before == (0 if step in (CHECKING, STORING) else 3)
    assert batches.names == []
    assert sorted(batches.backed_up()) == names
    assert len(list(batches.dependencies.backups.root.iterdir())) == 1
    assert not TranscriptBatch.objects.filter(cleaned_at=None).exists()


def test_new_batches_beside_those_of_a_killed_run_are_added(batches: Batches) -> None:
    batches.put(1, "a", "b")
    with pytest.raises(RuntimeError):
        batches.save(dependencies={"progress": fault(CLEANING_UP)})
    Message.objects.filter(content="b").update(content="edited")
    batches.put(2, "c", "d")
    saved = batches.save()
    assert (saved.saved_before, saved.added) == (1, 2)
    assert [content for _, content in stored()] == ["a", "edited", "c", "d"]
    assert sorted(batches.backed_up()) == [batch_name(1), batch_name(2)]


def test_a_backup_that_cant_be_written_is_told(batches: Batches, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    batches.put(1, "a", "b")
    with pytest.raises(FaultError, match="messages are stored, but there is no backup") as error:
        batches.save(dependencies={"backups": Backups(tmp_path / "file")})
    assert "run it again" in str(error.value)
    assert batches.names == [batch_name(1)]
    batches.save()
    assert len(stored()) == 2


def test_a_copy_that_is_not_what_was_written_is_no_backup(batches: Batches) -> None:
    batches.put(1, "a", "b")

    def damage(step: str, done: int, _total: int) -> None:
        if step == VERIFYING and done == 0:
            (copy,) = batches.dependencies.backups.root.glob("*/*.txt")
            copy.write_bytes(b"something else")

    with pytest.raises(FaultError, match="is not what was written"):
        batches.save(dependencies={"progress": damage})
    assert batches.names == [batch_name(1)]
    assert list(batches.dependencies.backups.root.iterdir()) == []


def test_a_file_that_is_changed_on_the_way_is_not_removed(batches: Batches) -> None:
    batches.put(1, "a", "b")
    batches.put(2, "c", "d")

    def change(step: str, done: int, _total: int) -> None:
        if step == CLEANING_UP and done == 1:
            batches.put(2, "c", "d", "more", "text")

    with pytest.raises(FaultError, match="changed meanwhile"):
        batches.save(dependencies={"progress": change})
    assert batches.names == [batch_name(2)]


def test_a_file_that_is_changed_while_it_is_stored_stores_nothing(batches: Batches) -> None:
    batches.put(1, "a", "b")

    def change(step: str, done: int, total: int) -> None:
        if step == CHECKING and done == total:
            batches.put(1, "other", "text")

    with pytest.raises(RefusedError) as error:
        batches.save(dependencies={"progress": change})
    assert error.value.problems[0].code == "changed_meanwhile"
    assert stored() == []


def test_after_a_clear_the_same_files_are_stored_again(batches: Batches) -> None:
    batches.put(1, "a", "b")
    with pytest.raises(RuntimeError):
        batches.save(dependencies={"progress": fault(CLEANING_UP)})
    session = ChatSession.objects.get()
    batches.dependencies.rules.chat_memory.clear_messages(conversation_id=session.pk)
    assert batches.save().added == 2


@pytest.mark.django_db(transaction=True)
def test_nothing_is_forgotten_until_the_backup_can_be_swept(batches: Batches) -> None:
    could_begin: dict[str, bool] = {}

    def forget() -> bool:
        """Whether somebody else could begin to forget what is stored at this moment."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(_try_forgetting).result()

    def look(step: str, _done: int, _total: int) -> None:
        could_begin[step] = forget()

    batches.put(1, "a", "b")
    batches.save(dependencies={"progress": look})
    assert could_begin == {
        CHECKING: True,
        STORING: True,
        "Backing up": False,
        VERIFYING: False,
        CLEANING_UP: True,
    }


def _try_forgetting() -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = 100")
            stored_in = TranscriptBatch.objects.values_list("backup", flat=True)
            forgetting_begin(Scopes(backups=frozenset(stored_in)))
            return True
    except OperationalError:
        return False
    finally:
        connection.close()
