"""Check, save and write transcripts as one text instead of a folder of batches."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import transaction

from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.transcript_files.problems import FolderError
from sessions_app.transcript_files.transcript_folder import BatchFolder, batch_name
from sessions_app.transcripts.conversation_queries import (
    Conversation,
    LeftOut,
    Target,
    conversation_exchanges,
)
from sessions_app.transcripts.export_transcripts import exchange_text, export_record, left_out_at
from sessions_app.transcripts.save import Saved, SaveDependencies, batches_save
from sessions_app.transcripts.status import Validation, folder_validate

OWNER_ONLY = 0o700
PREFIX = "text-"
# Longer than any save takes.
LEFT_SECONDS = 3_600


@dataclass
class TextResult:
    """A conversation's text.

    ``left_out``: each message that is in no exchange, by its place, and the reason.
    """

    text: str = ""
    messages: int = 0
    left_out: list[dict[str, Any]] = field(default_factory=list)


def text_validate(
    *, text: str, target: Target | None, folder: Path, overlap: int | None
) -> Validation:
    """Check whether ``text_save`` would accept the text.

    Without a target, only the format's rules are checked. ``folder``: the folder that may hold
    the text meanwhile. Raises FolderError.
    """
    with _laid_down(text, folder) as laid:
        return folder_validate(folder=laid, target=target, overlap=overlap)


def text_save(
    *,
    text: str,
    target: Target,
    folder: Path,
    dependencies: SaveDependencies,
    actor: Actor,
    overlap: int | None,
) -> Saved:
    """Save a text, which has no number: the batches of folders keep theirs.

    Messages that are stored already are not stored again. Call it outside of a transaction.
    Raises the errors of ``batches_save``.
    """
    with _laid_down(text, folder) as laid:
        return batches_save(
            folder=laid, target=target, dependencies=dependencies, overlap=overlap, actor=actor
        )


def conversation_text(*, conversation: Conversation, actor: Actor) -> TextResult:
    """Return the conversation's exchanges as one text, and record the access in the audit log.

    Messages that can't alternate are left out and reported.
    """
    result, texts = TextResult(), []
    with transaction.atomic():
        for found in conversation_exchanges(conversation=conversation):
            if isinstance(found, LeftOut):
                result.left_out.append(left_out_at(found.row, found.reason))
            else:
                texts.append(exchange_text(found))
        result.text = b"".join(texts).decode("utf-8")
        result.messages = 2 * len(texts)
        export_record(conversation, actor, result.messages, result.left_out)
    return result


def leftovers_remove(folder: Path, *, now: float | None = None) -> int:
    """Remove the texts that killed processes left; return how many."""
    before = (time.time() if now is None else now) - LEFT_SECONDS
    left = [path for path in folder.glob(f"{PREFIX}*") if _changed(path) < before]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return len(left)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


@contextmanager
def _laid_down(text: str, folder: Path) -> Iterator[BatchFolder]:
    """Write the text as a folder with one batch, and remove it at the end.

    Only the owner can read it.
    """
    try:
        folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        leftovers_remove(folder)
        laid = tempfile.TemporaryDirectory(dir=folder, prefix=PREFIX)
    except OSError as error:
        raise FolderError(f"The text can't be laid down: {error.strerror}.") from error
    with laid as name:
        (Path(name) / batch_name(1)).write_bytes(text.encode("utf-8"))
        yield BatchFolder(Path(name), is_one_text=True)
