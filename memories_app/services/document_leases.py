"""Who reads a document: one worker at a time, and the next one where that was killed."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from memories_app.models import DocumentState, SourceDocument
from memoryproject.lib.liveness import owner_is_gone, this_process

WAITING = (DocumentState.RECEIVED, DocumentState.EXTRACTING)
# Longer than reading takes, or one batch of vectors with its retries.
LEASE = timedelta(minutes=5)


class DocumentBusyError(Exception):
    """Another worker is reading the document, or it was forgotten meanwhile."""


def is_held(document: SourceDocument, now: datetime) -> bool:
    """Whether a living worker is reading the document."""
    if document.lease_token is None or document.lease_until is None:
        return False
    return document.lease_until > now and not owner_is_gone(document.lease_owner)


def document_claim(document: SourceDocument) -> UUID:
    """Take the lease. Raises DocumentBusyError."""
    now = timezone.now()
    token = uuid.uuid4()
    if is_held(document, now):
        raise DocumentBusyError(f"document {document.document_id} is being read")
    same = SourceDocument.objects.filter(
        Q(lease_token=document.lease_token)
        if document.lease_token
        else Q(lease_token__isnull=True),
        pk=document.pk,
        state__in=WAITING,
    )
    claimed = same.update(
        state=DocumentState.EXTRACTING,
        attempts=F("attempts") + 1,
        lease_token=token,
        lease_owner=this_process(),
        lease_until=now + LEASE,
    )
    if not claimed:
        raise DocumentBusyError(f"document {document.document_id} is being read")
    return token


def lease_renew(document: SourceDocument, token: UUID) -> None:
    """Hold on for another while. Raises DocumentBusyError."""
    held = SourceDocument.objects.filter(pk=document.pk, lease_token=token)
    if not held.update(lease_until=timezone.now() + LEASE):
        raise DocumentBusyError(f"document {document.document_id} is no longer ours")


def lease_release(document: SourceDocument, token: UUID) -> None:
    SourceDocument.objects.filter(pk=document.pk, lease_token=token).update(
        lease_token=None, lease_until=None
    )


def document_locked(document_id: UUID, token: UUID) -> SourceDocument:
    """The document, locked until the transaction ends. Raises DocumentBusyError."""
    locked = SourceDocument.objects.select_for_update(no_key=True)
    document = locked.filter(pk=document_id, lease_token=token).first()
    if document is None:
        raise DocumentBusyError(f"document {document_id} is no longer ours")
    return document
