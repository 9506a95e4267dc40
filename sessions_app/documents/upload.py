"""Receive a document that somebody uploads, for a chat or for the business as a whole."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from memories_app.documents.document_store import IncomingFile, Received, document_receive
from memories_app.models import Memory, SourceDocument, Visibility
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.process.jobs import enqueue
from sessions_app.conversations.epochs import chats_keep
from sessions_app.models import Chat


def document_upload(
    *,
    blocks: Iterable[bytes],
    name: str,
    folder: Path,
    max_bytes: int,
    actor: Actor,
    chat: Chat | None = None,
    visibility: str = "",
) -> Received:
    """Receive an uploaded file; a worker or the caller reads it later.

    Without ``visibility`` it is visible to the given chat, or to the owner if there is none.

    Raises DocumentError if it is too large; ChatGoneError; ValueError, OSError and DatabaseError
    like document_receive.
    """
    default = Visibility.OWNER if chat is None else Visibility.CHAT
    with IncomingFile(folder, max_bytes=max_bytes) as file:
        for block in blocks:
            file.write(block)
        with transaction.atomic():
            chats_keep([chat.pk] if chat else [])
            return document_receive(
                file=file,
                name=name,
                folder=folder,
                visibility=visibility or str(default),
                chat_id=chat.pk if chat else None,
                uploaded_by=actor.name or actor.kind,
                actor=actor,
            )


def enqueue_document(document_id: UUID) -> None:
    """Queue this document for a worker."""
    name = f"read {document_id}"
    enqueue("sessions_app.tasks.read_document", str(document_id), task_name=name)


# Query documents with what lists and pages show of them.


def with_passages(documents: QuerySet[SourceDocument]) -> QuerySet[Any]:
    """Add ``passage_count``: counted only for the rows that are read, not for all documents."""
    own = Memory.objects.filter(document=OuterRef("pk")).order_by().values("document")
    counted = own.annotate(count=Count("pk")).values("count")
    passages = Coalesce(Subquery(counted, output_field=IntegerField()), 0)
    return documents.annotate(passage_count=passages)


def documents_named() -> QuerySet[Any]:
    """Return all documents, each with its passages counted and its ``whatsapp_chat``."""
    chats = Chat.objects.filter(pk=OuterRef("chat_id")).values("whatsapp_chat")[:1]
    return with_passages(SourceDocument.objects.annotate(whatsapp_chat=Subquery(chats)))
