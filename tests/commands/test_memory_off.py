"""Commands that fill memory while the memory system is disabled: they do it, and say so."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memories_app.models import Memory, MemoryDocument, SourceDocument
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

TOLD = "The memory system is disabled: set ENABLE_MEMORY_SYSTEM=true in .env.\n"
SAVE = ("save", "--category", "decisions", "--identifier", "auth", "--content", "{}")


@pytest.fixture(autouse=True)
def own_folder(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"


def told_by(*command: str) -> str:
    told = StringIO()
    call_command(*command, stdout=StringIO(), stderr=told)
    return told.getvalue()


def written(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("enabled", [True, False])
def test_what_is_stored_while_memory_is_off_is_stored_and_told(
    enabled: bool, settings: Any, tmp_path: Path
) -> None:
    settings.ENABLE_MEMORY_SYSTEM = enabled
    told = "" if enabled else TOLD
    lines = written(tmp_path, "lines.ndjson", '{"content": "a", "visibility": "public"}\n')
    prices = written(tmp_path, "prices.csv", "product,price\nChallah,25 ILS\n")
    terms = written(tmp_path, "terms.txt", "TestCorp pays in 30 days.")
    assert told_by("manage_memory", *SAVE) == told
    assert told_by("memories_import", lines) == told
    assert told_by("import_knowledge", prices) == told
    assert told_by("documents_import", terms) == told
    assert MemoryDocument.objects.count() == 1
    assert Memory.objects.count() == 3


def test_reading_and_a_folder_of_ones_own_have_nothing_to_do_with_it(
    settings: Any, tmp_path: Path
) -> None:
    settings.ENABLE_MEMORY_SYSTEM = False
    assert told_by("manage_memory", "list") == ""
    assert told_by("manage_memory", "--root", str(tmp_path / "memory"), *SAVE) == ""


def test_documents_of_a_chat_that_is_switched_off_are_refused(world: World, tmp_path: Path) -> None:
    world.say(CLIENT, "hello")
    chat = world.chat(CLIENT)
    chat.memory_enabled = False
    chat.save()
    terms = written(tmp_path, "terms.txt", "Their own terms.")
    with pytest.raises(CommandError, match="Memory is switched off for this chat") as refused:
        told_by("documents_import", terms, "--chat", CLIENT)
    assert refused.value.returncode == 1
    assert not SourceDocument.objects.exists()
