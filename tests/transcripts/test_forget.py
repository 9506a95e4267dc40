"""What is forgotten goes from the backups of transcripts, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memories_app.models import Memory
from sessions_app.forgetting.execute import BACKUP_FILES
from sessions_app.forgetting.forget_objects import object_forget
from sessions_app.forgetting.sweep import ForgetDependencies
from sessions_app.models import ChatSession, Message, TranscriptBatch
from sessions_app.transcript_files.transcript_folder import batch_name
from sessions_app.transcripts.export_transcripts import Target
from tests.transcripts.conftest import Batches
from tests.world import CLIENT, World

SECRET = "The spare keys of the warehouse are in locker forty-two"


@pytest.fixture
def forgetting(world: World, batches: Batches) -> ForgetDependencies:
    """Two batches of which the second tells the secret."""
    batches.target = Target(whatsapp_chat=CLIENT)
    batches.put(1, "Hello", "Good morning")
    batches.put(2, f"By the way:\n{SECRET}.", "Noted.")
    batches.save()
    return ForgetDependencies(world.dependencies.chat_memory, batches.dependencies.backups)


def left(batches: Batches) -> list[str]:
    """The files that still hold the secret, the manifest among them."""
    files = [path for path in batches.dependencies.backups.root.rglob("*") if path.is_file()]
    return [path.name for path in files if "locker" in path.read_text()]


def test_a_message_takes_its_file_along(batches: Batches, forgetting: ForgetDependencies) -> None:
    assert left(batches) == [batch_name(2)]
    message = Message.objects.get(content__contains=SECRET)
    receipt = object_forget(kind="message", object_id=message.pk, dependencies=forgetting)
    assert left(batches) == []
    assert sorted(batches.backed_up()) == [batch_name(1)]
    assert receipt.swept[BACKUP_FILES] == 1
    (manifest,) = batches.dependencies.backups.root.glob("*/manifest.json")
    assert batch_name(2) not in manifest.read_text()


def test_a_memory_goes_from_the_backups_of_its_chat(
    world: World, batches: Batches, forgetting: ForgetDependencies
) -> None:
    world.remember(CLIENT, SECRET)
    object_forget(kind="memory", object_id=Memory.objects.get().pk, dependencies=forgetting)
    assert left(batches) == []


def test_by_the_command_of_people(
    world: World, batches: Batches, forgetting: ForgetDependencies
) -> None:
    world.dependencies = replace(world.dependencies, transcripts=batches.dependencies.backups)
    world.remember(CLIENT, SECRET)
    world.say(CLIENT, "/forget spare keys")
    assert left(batches) == []


def test_a_session_goes_with_its_backups(batches: Batches, forgetting: ForgetDependencies) -> None:
    receipt = object_forget(
        kind="session", object_id=ChatSession.objects.get().pk, dependencies=forgetting
    )
    assert batches.backed_up() == {}
    assert not TranscriptBatch.objects.exists()
    assert receipt.swept["sessions_app_transcriptbatch"] == 2


def test_a_chat_goes_with_its_backups_and_no_other(
    world: World, batches: Batches, forgetting: ForgetDependencies, tmp_path: Path
) -> None:
    batches.put(1, "Another", "chat")
    batches.save(target=Target())
    receipt = object_forget(kind="chat", object_id=world.chat(CLIENT).pk, dependencies=forgetting)
    assert batches.backed_up() == {batch_name(1): b"User: Another\nAssistant: chat\n"}
    assert receipt.swept[BACKUP_FILES] == 2


def test_what_a_killed_run_left_is_swept(batches: Batches, forgetting: ForgetDependencies) -> None:
    (backup,) = batches.dependencies.backups.root.iterdir()
    backup.rename(backup.with_name(f"{backup.name}.part"))
    message = Message.objects.get(content__contains=SECRET)
    object_forget(kind="message", object_id=message.pk, dependencies=forgetting)
    assert left(batches) == []
