"""A folder for waiting documents, and one step from a file to its memories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memories_app.documents.document_store import IncomingFile, Received, document_receive
from memories_app.documents.read_document import document_store
from memories_app.models import SourceDocument
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.models import Turn
from tests.doubles.direct_extractor import DirectExtractor

Receive = Callable[..., Received]
Store = Callable[..., SourceDocument]


def read(document: SourceDocument, folder: Path, **changes: Any) -> SourceDocument:
    """Read a document that was taken in, without a process for it."""
    tools = {"extractor": DirectExtractor(), "embedder": WordLlamaEmbedder(), **changes}
    return document_store(document_id=document.pk, folder=folder, **tools)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "documents"


@pytest.fixture
def receive(db: None, folder: Path) -> Receive:
    """Takes in bytes as an upload of staff."""

    def receiving(content: bytes, name: str = "terms.pdf", **changes: Any) -> Received:
        with IncomingFile(folder, max_bytes=1_000_000) as file:
            file.write(content)
            values = {"visibility": "owner", **changes}
            return document_receive(file=file, name=name, folder=folder, **values)

    return receiving


@pytest.fixture
def store(receive: Receive, folder: Path) -> Store:
    """Takes in bytes and reads them."""

    def storing(content: bytes, name: str = "terms.pdf", **changes: Any) -> SourceDocument:
        document = receive(content, name, **changes).document
        return read(document, folder)

    return storing


def as_if_killed_before_the_answer() -> None:
    """Take a chat's only answer back, as if the worker had been killed before it was stored."""
    turn = Turn.objects.get()
    assert turn.reply is not None
    turn.reply.delete()
    turn.parts.all().delete()
    Turn.objects.update(state="pending")
