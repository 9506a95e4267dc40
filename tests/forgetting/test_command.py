"""``manage.py forget``, the admin's forgetting, and PostgreSQL's own files."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from memories_app.models import Memory
from sessions_app.models import Chat
from tests.world import CLIENT, World

FACT = "TestCorp keeps the spare keys of the warehouse in locker forty-two"


def run(*arguments: str, **options: Any) -> str:
    out = StringIO()
    call_command("forget", *arguments, stdout=out, stderr=StringIO(), **options)
    return out.getvalue()


def test_a_memory_is_forgotten_with_a_receipt(world: World) -> None:
    world.remember(CLIENT, FACT)
    memory = Memory.objects.get()
    (receipt,) = json.loads(run("memory", str(memory.pk), yes=True, json=True))
    assert (receipt["kind"], receipt["object_id"]) == ("memory", str(memory.pk))
    assert receipt["probe"] == "absent"
    assert receipt["swept"]["memories_app_memory"] == 1
    with pytest.raises(CommandError, match="There is no memory"):
        run("memory", str(memory.pk), yes=True)


def test_search_forgets_all_that_match_each_with_its_receipt(world: World) -> None:
    for number in (1, 2):
        world.remember(CLIENT, f"Locker number {number} is for guest {number} of the hotel")
    world.remember(CLIENT, "Breakfast is at seven")
    assert len(json.loads(run("search", "locker", "guest", yes=True, json=True))) == 2
    assert Memory.objects.get().content == "Breakfast is at seven"


def test_search_forgets_nothing_that_lacks_a_small_word(world: World) -> None:
    for fact in ("Row 41 is a good one", "Idem, row 41", "Pas de noix", "Des noix"):
        world.remember(CLIENT, fact)
    run("search", "good one 41", yes=True)
    run("search", "pas de noix", yes=True)
    assert {each.content for each in Memory.objects.all()} == {"Idem, row 41", "Des noix"}


def test_a_chat_is_erased_after_all_of_it_was_written(world: World, tmp_path: Path) -> None:
    world.remember(CLIENT, FACT)
    file = tmp_path / "before.ndjson"
    run("chat", CLIENT, yes=True, export=str(file))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["content"] for line in lines if line["record"] == "memory"] == [FACT]
    said = [line["content"] for line in lines if line["record"] == "message"]
    assert f"/remember {FACT}" in said
    assert file.stat().st_mode & 0o077 == 0
    assert not Chat.objects.filter(whatsapp_chat=CLIENT).exists()


def test_a_chat_that_can_t_be_written_first_stays(world: World, tmp_path: Path) -> None:
    world.remember(CLIENT, FACT)
    file = tmp_path / "before.ndjson"
    file.write_text("somebody's")
    with pytest.raises(CommandError, match=r"before\.ndjson can't be written"):
        run("chat", CLIENT, yes=True, export=str(file))
    assert file.read_text() == "somebody's"
    assert Chat.objects.filter(whatsapp_chat=CLIENT).exists()


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("memory",), "Say which memory", 2),
        (("memory", "no-id"), "is no id", 2),
        (("chat", "15550009999@c.us"), "There is no chat", 1),
        (("message", "8c6b1f4e-0000-4000-8000-000000000000"), "There is no message", 1),
    ],
)
def test_wrong_use_is_told(db: None, arguments: tuple[str, ...], said: str, code: int) -> None:
    with pytest.raises(CommandError, match=said) as refused:
        run(*arguments, yes=True)
    assert refused.value.returncode == code


def test_without_yes_nothing_is_forgotten(world: World) -> None:
    world.remember(CLIENT, FACT)
    with pytest.raises(CommandError, match="Add --yes") as refused:
        run("memory", str(Memory.objects.get().pk))
    assert refused.value.returncode == 2
    assert Memory.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_purge_makes_postgresqls_own_files_let_go(world: World) -> None:
    """Neither the tables' files nor the write-ahead log hold it afterwards."""
    fact = "The combination of the safe behind the painting is ninety-one seven"
    world.remember(CLIENT, fact)
    world.say(CLIENT, "What is the combination of the safe?")
    memory = Memory.objects.get()
    run("memory", str(memory.pk), yes=True)
    run("purge")
    assert _files_with(fact) == []


def _files_with(text: str) -> list[str]:
    wanted = text.encode()
    return [
        path.name
        for path in Path(settings.DATA_DIR).rglob("*")
        if path.is_file() and not path.is_symlink() and wanted in path.read_bytes()
    ]
