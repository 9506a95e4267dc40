"""Receive documents, and forget them with all memories that were read from them."""

import hashlib
import logging
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from memories_app.models import DocumentState, Memory, SourceDocument, Visibility
from memories_app.store.memory_fields import passages_forgotten
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from memoryproject.foundation.integrations.documents.sniffing import DocumentError
from memoryproject.foundation.leases import Lease
from memoryproject.foundation.text.uuids import uuid_or_none

logger = logging.getLogger(__name__)

MAX_NAME_LENGTH = 255


@dataclass(frozen=True)
class Received:
    """The result of receiving a document.

    ``duplicate``: the same file was read before, in the same scope. ``created``: it is the first
    time that this file came.
    """

    document: SourceDocument
    duplicate: bool = False
    created: bool = False


def document_receive(
    *,
    file: "IncomingFile",
    name: str,
    folder: Path,
    visibility: str,
    chat_id: UUID | None = None,
    source_message_id: UUID | None = None,
    uploaded_by: str = "",
    actor: Actor = SYSTEM,
) -> Received:
    """Receive a file that is written completely; its text is read later.

    The same file in the same chat and with the same visibility is the same document. If it
    couldn't be read before, it is tried again.

    Raises ValueError if ``visibility`` is unknown or lacks its chat. Raises OSError and
    DatabaseError; then nothing is kept.
    """
    _check_visibility(visibility, chat_id)
    shown = shown_name(name)
    with transaction.atomic():
        document, fresh = SourceDocument.objects.select_for_update(no_key=True).get_or_create(
            sha256=file.sha256,
            chat_id=chat_id,
            visibility=visibility,
            defaults={
                "name": shown,
                "size": file.size,
                "source_message_id": source_message_id,
                "uploaded_by": uploaded_by[:150],
            },
        )
        if document.state == DocumentState.READY:
            return Received(document, duplicate=True)
        if document.state == DocumentState.FAILED:
            _start_again(document, shown, source_message_id)
        file.put(document_file(folder, document.document_id))
        if fresh:
            document_audit(
                "document.receive", document, actor, size=document.size, visibility=visibility
            )
    logger.info("Document %s was received (%d bytes).", document.document_id, document.size)
    return Received(document, created=fresh)


def document_forget(
    *,
    document: SourceDocument,
    folder: Path | None = None,
    actor: Actor = SYSTEM,
    details: Mapping[str, object] | None = None,
) -> dict[str, int]:
    """Delete a document with all its memories, and its file if it still waits in ``folder``.

    ``details``: those of the audit event, such as the receipt of the erasure. Return the number of
    deleted rows by model, as Django's ``delete`` does. Raises SourceDocument.DoesNotExist if the
    document is already deleted.
    """
    with transaction.atomic():
        locked = SourceDocument.objects.select_for_update().get(pk=document.pk)
        memories = Memory.objects.filter(document=locked).count()
        document_audit("document.forget", locked, actor, memories=memories, **(details or {}))
        passages_forgotten(locked.document_id)
        _, rows = locked.delete()
    if folder is not None:
        file_remove(folder, document.document_id)
    # Only after the commit: a preview of forgetting is rolled back.
    values = (document.document_id, memories)
    transaction.on_commit(
        lambda: logger.info("Document %s was forgotten with %d memories.", *values)
    )
    return rows


def message_documents_forget(*, message_id: UUID, actor: Actor) -> int:
    """Forget the documents of a message that the sender deleted; return their number.

    Call it in a transaction. The sweep removes files that still wait. A worker that reads
    such a document now stores nothing.
    """
    documents = list(SourceDocument.objects.filter(source_message_id=message_id))
    for document in documents:
        document_forget(document=document, actor=actor)
    return len(documents)


def _check_visibility(visibility: str, chat_id: UUID | None) -> None:
    if visibility not in Visibility.values:
        raise ValueError(f"visibility is one of {', '.join(Visibility.values)}.")
    if visibility == str(Visibility.CHAT) and chat_id is None:
        raise ValueError("A document that is visible in one chat needs that chat.")


def document_audit(action: str, document: SourceDocument, actor: Actor, **details: object) -> None:
    audit_record(
        action,
        actor,
        "document",
        document.document_id,
        content_hash=document.sha256,
        **details,
        chat_id=document.chat_id,
    )


def _start_again(document: SourceDocument, name: str, source_message_id: UUID | None) -> None:
    document.state = DocumentState.RECEIVED
    document.name = name
    document.source_message_id = source_message_id
    document.error = document.error_code = ""
    document.attempts = 0
    document.lease_token = None
    document.save()


def shown_name(name: str) -> str:
    """Return the file's name as the sender wrote it, without a path and unstorable characters."""
    bare = "".join(char for char in name if char.isprintable())
    bare = bare.replace("\\", "/").rpartition("/")[2].strip()
    return bare[-MAX_NAME_LENGTH:] or "document"


# Claims of documents: one worker at a time reads a document.

WAITING = (DocumentState.RECEIVED, DocumentState.EXTRACTING)


class DocumentBusyError(Exception):
    """Another worker is reading the document, or it was forgotten meanwhile."""


@dataclass(frozen=True)
class DocumentLease(Lease[SourceDocument]):
    """The right to read one document."""

    def lost(self) -> DocumentBusyError:
        # Its own error: a turn that reads a document may lose its lease in the same step.
        return DocumentBusyError(f"the lease of document {self.row.pk} is lost")


def document_claim(document: SourceDocument) -> DocumentLease:
    """Take the lease. Raises DocumentBusyError."""
    token = SourceDocument.objects.filter(state__in=WAITING).claim(
        document, state=DocumentState.EXTRACTING, attempts=F("attempts") + 1
    )
    if token is None:
        raise DocumentBusyError(f"document {document.document_id} is being read")
    return DocumentLease(document, token)


# Files of documents that wait to be read. They are deleted after reading.

INCOMING = ".incoming-"
SUFFIX = ".document"
# Longer than any program needs to write a file or waits for one.
LEFT_OVER_SECONDS = 3600.0


def document_file(folder: Path, document_id: UUID) -> Path:
    """Return the path of a document's file. The file name reveals nothing about the document."""
    return folder / f"{document_id}{SUFFIX}"


class IncomingFile:
    """A file that is being written, readable for its owner only.

    It is removed at the end of the ``with`` block unless ``put`` moved it to its place.
    """

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        descriptor, name = tempfile.mkstemp(prefix=INCOMING, dir=folder)
        self.path = Path(name)
        self.size = 0
        self._file = os.fdopen(descriptor, "wb")
        self._hash = hashlib.sha256()
        self._most_bytes = max_bytes

    @property
    def sha256(self) -> str:
        """Return the hex SHA-256 of what was written so far."""
        return self._hash.hexdigest()

    def write(self, block: bytes) -> None:
        """Append a block. Raises DocumentError if the file becomes too large; OSError."""
        self.size += len(block)
        if self.size > self._most_bytes:
            raise DocumentError("too_large")
        self._hash.update(block)
        self._file.write(block)

    def put(self, place: Path) -> None:
        """Move the complete file to its place. Raises OSError."""
        os.replace(self.finished(), place)

    def finished(self) -> Path:
        """Return where the complete file lies, once the disk has all of it. Raises OSError."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self.path

    def read(self) -> bytes:
        """Return what was written. Raises OSError."""
        self._file.flush()
        return self.path.read_bytes()

    def __enter__(self) -> "IncomingFile":
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._file.close()
        finally:
            self.path.unlink(missing_ok=True)


def file_remove(folder: Path, document_id: UUID) -> None:
    """Remove the file of a document, if it is there."""
    document_file(folder, document_id).unlink(missing_ok=True)


# Find documents of dead workers, and remove files that no document waits for.


# The document may just have been received and is about to be queued.
JUST_NOW = timedelta(seconds=30)
# A message's document is read in its turn, which has its own sweep.
LEFT_TO_ITS_TURN = timedelta(hours=1)


def documents_abandoned(now: datetime) -> list[UUID]:
    """Return the documents that have waited for some time without a worker."""
    uploaded = Q(source_message_id__isnull=True, created_at__lt=now - JUST_NOW)
    waited = uploaded | Q(created_at__lt=now - LEFT_TO_ITS_TURN)
    waiting = SourceDocument.objects.filter(waited, state__in=WAITING).order_by("created_at")
    return [document.pk for document in waiting.abandoned(now)]


def leftovers_remove(folder: Path) -> int:
    """Remove the files that no document waits for; return how many."""
    oldest = time.time() - LEFT_OVER_SECONDS
    removed = 0
    for path in sorted(folder.glob("*")):
        try:
            is_old = path.stat().st_mtime < oldest
        except FileNotFoundError:
            continue
        if _is_left_over(uuid_or_none(path.name.removesuffix(SUFFIX)), is_old=is_old):
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _is_left_over(document_id: UUID | None, *, is_old: bool) -> bool:
    # It is being written, or belongs to no document.
    if document_id is None:
        return is_old
    document = SourceDocument.objects.filter(pk=document_id).only("state").first()
    # Its row may be in a transaction that isn't committed yet.
    return is_old if document is None else document.state not in WAITING
