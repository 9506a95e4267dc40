"""A preview tells what goes, as the receipts will, and changes nothing."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction

from memories_app.models import Memory
from sessions_app.conversations.epochs import Reader, forgetting_wait
from sessions_app.conversations.preview_recorder import MAX_SHOWN, ChangeKind
from sessions_app.forgetting import runs as previews
from sessions_app.forgetting.runs import Chosen, preview_make
from sessions_app.models import Chat, Message, Note, TranscriptBatch
from sessions_app.transcript_files.backups import Backups
from tests.forgetting.dump import everything
from tests.forgetting.forgetting_tools import dependencies_of
from tests.world import CLIENT, GODFATHER, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

FACT = "The gate of the yard opens with the number of the old tram"
OTHER = "Liora gets a discount of eleven percent on garden chairs"


def lively(world: World) -> None:
    """Chats with summaries, answers that retell, lists, several sessions."""
    world.summarizing(every=4)
    world.remember(CLIENT, FACT)
    world.say(CLIENT, FACT)
    world.say(CLIENT, "/memories")
    world.say(CLIENT, f"Is it so? {FACT}")
    world.sum_up(CLIENT)
    world.say(CLIENT, "/reset")
    world.say(CLIENT, "How do I get into the yard?")
    world.say(GODFATHER, "How do they get into the yard?")
    world.remember(CLIENT, OTHER)


def of_kind(kind: str, world: World) -> list[Chosen]:
    said = Message.objects.filter(content=FACT)
    keys: dict[str, Any] = {
        "memory": Memory.objects.values_list("pk", flat=True),
        "message": said.values_list("pk", flat=True),
        "session": said.values_list("session_id", flat=True),
        "messages": said.values_list("session_id", flat=True),
        "chat": Chat.objects.filter(whatsapp_chat=CLIENT).values_list("pk", flat=True),
    }
    return [(kind, key) for key in list(keys[kind])]


def stored() -> list[str]:
    """All rows. The next key of a table isn't given back, and pg_dump signs its output."""
    noise = ("\\restrict", "\\unrestrict", "SELECT pg_catalog.setval")
    return [line for line in everything().splitlines() if not line.startswith(noise)]


@pytest.mark.parametrize("kind", ["memory", "message", "session", "messages", "chat"])
def test_it_is_what_the_receipts_say(world: World, kind: str) -> None:
    lively(world)
    chosen = of_kind(kind, world)
    before = stored()

    preview = preview_make(chosen=chosen, dependencies=dependencies_of(world))

    assert stored() == before
    assert preview.tried
    tables: Counter[str] = Counter()
    for kind_, key in chosen:
        receipt = world.forget(kind_, key)
        tables.update(receipt.swept)
    assert preview.tables == tables
    assert preview.there == len(chosen)


def test_it_shows_what_goes_and_what_is_left_of_answers(world: World) -> None:
    lively(world)
    answer = Message.objects.filter(role="assistant", content__contains=FACT).exclude(
        metadata__has_key="system_text"
    )[0]
    Message.objects.filter(pk=answer.pk).update(content=f"Good morning. {FACT}. Good bye.")
    preview = preview_make(chosen=of_kind("memory", world), dependencies=dependencies_of(world))
    changes = preview.recorder.changes
    assert {each.text for each in changes[ChangeKind.MEMORY]} == {FACT, OTHER}
    (rewritten,) = [each for each in changes[ChangeKind.ANSWER] if each.key == str(answer.pk)]
    assert rewritten.left == "Good morning. [forgotten] Good bye."
    assert f"/remember {FACT}" in {each.text for each in changes[ChangeKind.MESSAGE]}
    assert changes[ChangeKind.SUMMARY]
    assert preview.recorder.counts[ChangeKind.DELIVERY]


def test_it_shows_the_notes_that_go_or_are_cut(world: World) -> None:
    world.say(CLIENT, FACT)
    message = Message.objects.get(content=FACT)
    beside = {"chat": message.chat, "author_name": "dana", "created_at": message.received_at}
    Note.objects.create(**beside, message=message, text="Is this so?")
    Note.objects.create(**beside, text=f"They say: {FACT}. Ask them.")
    preview = preview_make(chosen=[("message", message.pk)], dependencies=dependencies_of(world))
    changes = {each.text: each.left for each in preview.recorder.changes[ChangeKind.NOTE]}
    assert changes == {"Is this so?": "", f"They say: {FACT}. Ask them.": "[forgotten] Ask them."}
    assert preview.tables["sessions_app_note"] == 2


def test_files_of_backups_are_counted_and_stay(world: World, tmp_path: Path) -> None:
    world.say(CLIENT, FACT)
    session = world.session(CLIENT)
    backup = tmp_path / "20260101T000000Z-x"
    backup.mkdir()
    file = backup / "batch_0001.md"
    file.write_text(f"*User:* {FACT}\n")
    TranscriptBatch.objects.create(
        chat=session.chat,
        session=session,
        number=1,
        digest="x",
        messages=1,
        backup=backup.name,
        saved_at=session.created_at,
    )
    dependencies = dependencies_of(world, transcripts=Backups(tmp_path))
    preview = preview_make(chosen=[("session", session.pk)], dependencies=dependencies)
    assert preview.tables["transcript backups"] == 1
    assert file.exists()


def test_who_is_storing_isnt_waited_for_long(world: World, monkeypatch: Any) -> None:
    world.remember(CLIENT, FACT)
    monkeypatch.setattr(previews, "MAX_WAIT_SECONDS", 0.05)
    reader = Reader(world.chat(CLIENT).pk)
    storing, looked = threading.Event(), threading.Event()

    def store() -> None:
        with transaction.atomic():
            forgetting_wait(reader)
            storing.set()
            looked.wait(30)
        connections.close_all()

    thread = threading.Thread(target=store)
    thread.start()
    storing.wait(30)
    try:
        preview = preview_make(chosen=of_kind("memory", world), dependencies=dependencies_of(world))
    finally:
        looked.set()
        thread.join()
    assert not preview.tried
    assert preview.tables == {"memories_app_memory": 1}
    assert [each.text for each in preview.recorder.changes[ChangeKind.MEMORY]] == [FACT]


def test_a_long_conversation_is_counted(world: World, monkeypatch: Any) -> None:
    world.say(CLIENT, "Good morning")
    first = Message.objects.earliest("received_at")
    more = [
        Message(
            session=first.session,
            chat=first.chat,
            order_num=number + 10,
            role="user",
            content=f"number {number}",
            timestamp=first.timestamp,
            tokens=1,
        )
        for number in range(200)
    ]
    Message.objects.bulk_create(more)
    monkeypatch.setattr(previews, "MAX_MESSAGES", 150)
    preview = preview_make(chosen=of_kind("chat", world), dependencies=dependencies_of(world))
    assert not preview.tried
    assert preview.tables["sessions_app_message"] == Message.objects.count()
    assert len(preview.recorder.changes[ChangeKind.MESSAGE]) == MAX_SHOWN
    assert preview.recorder.counts[ChangeKind.MESSAGE] == Message.objects.count()
    assert Chat.objects.count() == 1
