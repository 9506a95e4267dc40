"""Receive documents, and forget them with all memories that were read from them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db import transaction

from memories_app.documents.document_files import IncomingFile, document_file, file_remove
from memories_app.models import DocumentState, Memory, SourceDocument, Visibility
from memories_app.store.facade import passages_forgotten
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record

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
    file: IncomingFile,
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
            _audit("document.receive", document, actor, size=document.size, visibility=visibility)
    logger.info("Document %s was received (%d bytes).", document.document_id, document.size)
    return Received(document, created=fresh)


def document_forget(
    *,
    document: SourceDocument,
    folder: Path | None = None,
    actor: Actor = SYSTEM,
    details: Mapping[str, object] | None = None,
) -> int:
    """Delete a document with all its memories, and its file if it still waits in ``folder``.

    ``details``: those of the audit event, such as the receipt of the erasure. Return the number of
    deleted memories. Raises SourceDocument.DoesNotExist if the document is already deleted.
    """
    with transaction.atomic():
        locked = SourceDocument.objects.select_for_update().get(pk=document.pk)
        memories = Memory.objects.filter(document=locked).count()
        _audit("document.forget", locked, actor, memories=memories, **(details or {}))
        passages_forgotten(locked.document_id)
        locked.delete()
    if folder is not None:
        file_remove(folder, document.document_id)
    # Only after the commit: a preview of forgetting is rolled back.
    values = (document.document_id, memories)
    transaction.on_commit(
        lambda: logger.info("Document %s was forgotten with %d memories.", *values)
    )
    return memories


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


def _audit(action: str, document: SourceDocument, actor: Actor, **details: object) -> None:
    audit_record(
        action=action,
        actor=actor,
        object_type="document",
        object_id=document.document_id,
        content_hash=document.sha256,
        details=details,
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
