"""A document's text becomes the memories of one source, once, and goes as one."""

from __future__ import annotations

import os
import stat
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from memories_app.documents.document_store import (
    DocumentBusyError,
    IncomingFile,
    document_file,
    document_forget,
    documents_abandoned,
    leftovers_remove,
)
from memories_app.models import DocumentState, Memory, MemoryEmbedding, SourceDocument
from memories_app.store.same_files import memories_move
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.documents.sniffing import DocumentError, ExtractedText
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.leases import this_process
from sessions_app.models.chats import CLIENT, GODFATHER
from sessions_app.recall.facade import Viewer, recall
from tests.documents import files
from tests.documents.conftest import Receive, Store, read

PAGES = [
    "\n".join(f"Clause {page}.{line} says what TestCorp pays for goods." for line in range(40))
    for page in range(1, 4)
]
CHAT = uuid.UUID(int=1)
OTHER_CHAT = uuid.UUID(int=2)


class FailingEmbedder(WordLlamaEmbedder):
    """Has no vectors to give."""

    def embed(self, texts: object) -> list[list[float]]:
        raise EmbedderError("the model server is down")


class StoppedExtractor:
    """Stands for a worker that is killed while it reads."""

    def extract(self, path: Path) -> ExtractedText:
        raise KeyboardInterrupt


def lying(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*"))


def test_a_document_becomes_memories_in_order_with_vectors(store: Store, folder: Path) -> None:
    document = store(files.pdf(*PAGES, title="Terms"), name="C:\\papers\\terms.pdf")

    assert (document.state, document.pages, document.title) == ("ready", 3, "Terms")
    assert (document.name, document.media_type) == ("terms.pdf", "application/pdf")
    memories = list(document.memories.order_by("position"))
    assert [memory.position for memory in memories] == list(range(1, len(memories) + 1))
    assert {(memory.type, memory.source) for memory in memories} == {("document", "document")}
    assert [memory.metadata["page"] for memory in memories][::-1][0] == 3
    read = "".join("".join(memory.content.split()) for memory in memories)
    assert read == "".join("".join(page.split()) for page in PAGES)
    assert document.characters == sum(map(len, PAGES)) + 2
    assert MemoryEmbedding.objects.filter(memory__in=memories).count() == len(memories)
    assert lying(folder) == [], "only the text is kept"


def test_it_is_recalled_for_whom_it_is_visible(store: Store) -> None:
    fact = files.docx("The warranty of TestCorp's pumps is seven years.")
    store(fact, visibility="chat", chat_id=CHAT)
    query = "How long is the warranty of TestCorp's pumps?"

    def found(user_role: str, chat_id: uuid.UUID) -> list[str]:
        viewer = Viewer(user_role=user_role, chat_id=chat_id)
        return [hit.content for hit in recall(query=query, viewer=viewer, embedder=embedder).hits]

    embedder = WordLlamaEmbedder()
    assert found(CLIENT, CHAT) == ["The warranty of TestCorp's pumps is seven years."]
    assert found(GODFATHER, OTHER_CHAT) == found(CLIENT, CHAT)
    assert found(CLIENT, OTHER_CHAT) == []


def test_a_file_of_a_scope_is_one_document(store: Store, receive: Receive, folder: Path) -> None:
    content = files.pdf("TestCorp pays in 30 days.")
    document = store(content)

    again = receive(content, name="copy.pdf")
    elsewhere = receive(content, visibility="chat", chat_id=CHAT)

    assert (again.duplicate, again.document.pk) == (True, document.pk)
    assert again.document.name == "terms.pdf"
    assert (elsewhere.duplicate, elsewhere.document.pk != document.pk) == (False, True)
    assert lying(folder) == [f"{elsewhere.document.pk}.document"]


def test_a_file_that_cannot_be_read_fails_with_the_reason_and_is_not_kept(
    store: Store, receive: Receive, folder: Path
) -> None:
    document = store(files.encrypted_pdf("password"))
    assert (document.state, document.error_code) == ("failed", "encrypted")
    assert document.error == "The document is protected by a password."
    assert lying(folder) == []
    assert not Memory.objects.exists()

    again = receive(files.encrypted_pdf("password"))
    assert again.document.pk != document.pk, "encrypting gives another file each time"


def test_killed_while_reading_it_is_read_once_by_the_next(receive: Receive, folder: Path) -> None:
    """The lease of a dead worker doesn't hold up the next one; one of a living worker does."""
    document = receive(files.pdf("TestCorp pays in 30 days.")).document
    dead = this_process().rpartition(":")[0] + ":1000.00"
    held = {
        "state": DocumentState.EXTRACTING,
        "lease_token": uuid.uuid4(),
        "lease_until": timezone.now() + timedelta(minutes=5),
    }
    SourceDocument.objects.update(**held, lease_owner=this_process())
    with pytest.raises(DocumentBusyError):
        read(document, folder)

    SourceDocument.objects.update(**held, lease_owner=dead)
    stored = read(document, folder)

    assert (stored.state, stored.memories.count(), stored.lease_token) == ("ready", 1, None)


def test_who_lost_the_lease_stores_nothing(receive: Receive, folder: Path) -> None:
    document = receive(files.pdf("TestCorp pays in 30 days.")).document

    def lose() -> None:
        SourceDocument.objects.update(lease_token=uuid.uuid4())

    with pytest.raises(DocumentBusyError):
        read(document, folder, before_step=lose)
    assert not Memory.objects.exists()


def test_a_file_that_ends_each_worker_is_left_alone(receive: Receive, folder: Path) -> None:
    document = receive(files.pdf("TestCorp pays in 30 days.")).document
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            read(document, folder, extractor=StoppedExtractor())

    document = read(document, folder)
    assert (document.state, document.error_code) == ("failed", "damaged")


def test_without_vectors_it_is_found_by_its_words(receive: Receive, folder: Path) -> None:
    document = receive(files.pdf("TestCorp pays in 30 days.")).document
    stored = read(document, folder, embedder=FailingEmbedder())
    assert (stored.state, stored.memories.count()) == ("ready", 1)
    assert stored.warnings == ["It has no vectors: its passages are found by their words."]


def test_forgetting_takes_memories_and_file(store: Store, receive: Receive, folder: Path) -> None:
    document = store(files.pdf(*PAGES))
    memories = document.memories.count()
    staff = Actor("staff", "somebody")

    rows = document_forget(document=document, folder=folder, actor=staff)
    assert rows["memories_app.Memory"] == memories > 1
    assert not Memory.objects.exists()
    assert not MemoryEmbedding.objects.exists()
    event = AuditEvent.objects.get(action="document.forget")
    assert (event.actor, event.content_hash) == ("somebody", document.sha256)
    assert event.details == {"memories": memories}

    waiting = receive(files.pdf("Not read yet.")).document
    document_forget(document=waiting, folder=folder)
    assert lying(folder) == []
    assert not SourceDocument.objects.exists()


def test_files_lie_for_their_owner_alone(receive: Receive, folder: Path) -> None:
    document = receive(files.pdf("TestCorp pays in 30 days.")).document
    path = document_file(folder, document.pk)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_too_large_leaves_nothing(folder: Path) -> None:
    with pytest.raises(DocumentError) as caught, IncomingFile(folder, max_bytes=10) as file:
        file.write(b"x" * 11)
    assert caught.value.code == "too_large"
    assert lying(folder) == []


def test_a_sweep_takes_up_what_was_left_and_removes_what_nobody_waits_for(
    receive: Receive, store: Store, folder: Path
) -> None:
    left = receive(b"left by a dead worker").document
    fresh = receive(b"just received").document
    in_turn = receive(b"read in its turn", source_message_id=uuid.uuid4()).document
    ready = store(b"read already")
    before = timezone.now() - timedelta(minutes=2)
    SourceDocument.objects.exclude(pk=fresh.pk).update(created_at=before)
    document_file(folder, ready.pk).write_bytes(b"killed before it was removed")
    new = folder / ".incoming-new"
    old = folder / ".incoming-old"
    nobodys = folder / f"{uuid.uuid4()}.document"
    for path in (new, old, nobodys):
        path.write_bytes(b"half")
    for path in (old, nobodys):
        os.utime(path, (0, 0))

    assert documents_abandoned(timezone.now()) == [left.pk]
    assert leftovers_remove(folder) == 3
    waiting = [f"{each.pk}.document" for each in (left, fresh, in_turn)]
    assert lying(folder) == sorted([new.name, *waiting])


def test_documents_move_with_a_chat_and_what_both_have_is_kept_once(store: Store) -> None:
    for chat_id in (CHAT, OTHER_CHAT):
        store(b"in both", visibility="chat", chat_id=chat_id)
    store(b"in one", visibility="chat", chat_id=CHAT)

    memories_move(from_chat=CHAT, to_chat=OTHER_CHAT)

    assert set(SourceDocument.objects.values_list("chat_id", flat=True)) == {OTHER_CHAT}
    assert sorted(Memory.objects.values_list("content", "chat_id")) == [
        ("in both", OTHER_CHAT),
        ("in one", OTHER_CHAT),
    ]


def test_a_document_of_one_chat_needs_that_chat(receive: Receive) -> None:
    with pytest.raises(ValueError, match="needs that chat"):
        receive(b"text", visibility="chat")
    with pytest.raises(ValueError, match="visibility is one of"):
        receive(b"text", visibility="everybody")
