"""A chat is erased while something is stored in it: nothing of it is left without a chat."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.db import transaction
from django.test import Client
from django.utils import timezone

from memories_app.errors import MemoryOperationError
from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.rest_kit.authentication import Caller
from sessions_app.conversations.epochs import ChatGoneError, chats_keep
from sessions_app.documents.upload import document_upload
from sessions_app.embedding.facade import messages_embed
from sessions_app.inbound.synchronous_chat import NoAnswerError, talk
from sessions_app.memories.api.writing import memories_add
from sessions_app.memories.transfer import memories_import
from sessions_app.models import Chat, Message, MessageEmbedding, Turn
from sessions_app.turns.admin import teach
from tests.threads import begin_blocked, elsewhere
from tests.world import CLIENT, World

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("new_connection_after"),
]

FACT = "The locker of the pool opens with the code of the old tram"


class DisturbedEmbedder(WordLlamaEmbedder):
    """Something happens the first time that it makes vectors."""

    def __init__(self, happening: Callable[[], object]) -> None:
        super().__init__()
        self._happenings = [happening]

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self._happenings:
            elsewhere(self._happenings.pop())
        return super().embed(texts)


def erase(world: World) -> None:
    world.forget("chat", world.chat(CLIENT).pk)


def disturbed(world: World) -> DisturbedEmbedder:
    """An embedder during whose first call the chat is erased."""
    world.say(CLIENT, "Hello")
    return DisturbedEmbedder(lambda: erase(world))


def test_a_fact_told_meanwhile_is_not_stored(world: World) -> None:
    world.use(embedder=disturbed(world))
    world.say(CLIENT, f"/remember {FACT}")
    assert not Memory.objects.exists()
    assert not Chat.objects.exists()


def test_staff_who_teach_a_client_are_told(world: World) -> None:
    world.say(CLIENT, "When does the pool open?")
    turn = Turn.objects.select_related("chat", "message").get()
    erase(world)
    with pytest.raises(MemoryOperationError, match="erased meanwhile"):
        teach.remember(turn, FACT, "client", SYSTEM)
    assert not Memory.objects.exists()


def test_a_file_that_is_uploaded_meanwhile_is_refused(world: World, tmp_path: Path) -> None:
    world.say(CLIENT, "Hello")
    chat = world.chat(CLIENT)

    def blocks() -> Iterator[bytes]:
        yield FACT.encode()
        elsewhere(lambda: erase(world))

    with pytest.raises(ChatGoneError):
        document_upload(
            blocks=blocks(),
            name="pool.txt",
            folder=tmp_path,
            max_bytes=1_000,
            actor=SYSTEM,
            chat=chat,
        )
    assert not SourceDocument.objects.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("page", "fields"),
    [
        ("memory", {"content": FACT, "type": "fact"}),
        ("sourcedocument", {"file": ContentFile(FACT.encode(), name="pool.txt")}),
    ],
)
def test_what_staff_add_meanwhile_is_refused(
    world: World, admin_client: Client, settings: Any, page: str, fields: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    world.say(CLIENT, "Hello")
    form = {"visibility": "chat", "whatsapp_chat": CLIENT, **fields}

    def add() -> str:
        address = f"/admin/memories_app/{page}/add/"
        return admin_client.post(address, form, follow=True).content.decode()

    with transaction.atomic():
        erase(world)
        adding = begin_blocked(add)
    answer = adding.result()
    assert "The client was erased meanwhile" in answer
    assert not Memory.objects.exists()
    assert not SourceDocument.objects.exists()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert (FACT in answer) == (page == "memory"), "what was typed is shown again"


def test_a_memory_by_the_api_is_refused(world: World) -> None:
    caller = Caller(key="token:1", actor=SYSTEM, scopes=frozenset({"write"}))
    gone = NewMemory(content=FACT, visibility="chat", chat_id=uuid4())
    with pytest.raises(ChatGoneError):
        memories_add([gone], caller)
    assert not Memory.objects.exists()


def test_an_import_makes_the_chat_anew(world: World) -> None:
    """As if it had come after the erasure."""
    embedder = disturbed(world)
    before = world.chat(CLIENT).pk
    line = f'{{"content": "{FACT}", "whatsapp_chat": "{CLIENT}"}}'.encode()
    report = memories_import(lines=[line], embedder=embedder, actor=SYSTEM)
    assert (report.created, report.errors) == (1, [])
    assert Memory.objects.get().chat_id == world.chat(CLIENT).pk != before


def test_a_chat_that_is_kept_is_not_erased_until_the_end(world: World) -> None:
    world.say(CLIENT, "Hello")
    chat_id = world.chat(CLIENT).pk
    with transaction.atomic():
        chats_keep([chat_id])
        erasing = begin_blocked(lambda: erase(world))
        assert Chat.objects.exists()
    erasing.result()
    with pytest.raises(ChatGoneError), transaction.atomic():
        chats_keep([chat_id])


def test_who_waits_for_the_answer_is_told(world: World) -> None:
    dependencies = replace(world.dependencies, embedder=disturbed(world))
    with pytest.raises(NoAnswerError, match="erased meanwhile"):
        talk(
            whatsapp_chat=CLIENT,
            content="When does the pool open?",
            dependencies=dependencies,
            rules=world.rules,
            now=timezone.now(),
        )


def test_a_chat_that_is_gone_is_no_fault(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.remember(CLIENT, "The pool opens at eight")
    world.use(embedder=disturbed(world))
    with caplog.at_level(logging.WARNING, "sessions_app.turns"):
        assert world.say(CLIENT, "When does the pool open?") == []
    assert "WARNING" in [record.levelname for record in caplog.records]
    assert "ERROR" not in [record.levelname for record in caplog.records]
    assert not Turn.objects.exists()


def test_vectors_that_are_added_meanwhile_go_with_their_messages(world: World) -> None:
    world.say(CLIENT, "The pool opens at seven")
    MessageEmbedding.objects.all().delete()
    session_id = world.session(CLIENT).pk
    with transaction.atomic():
        assert messages_embed(session_id=session_id, embedder=WordLlamaEmbedder()) > 0
        erasing = begin_blocked(lambda: erase(world))
    erasing.result()
    assert not MessageEmbedding.objects.exists()
    assert not Message.objects.exists()
