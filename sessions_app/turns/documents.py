"""Read the document of a message, and report the result."""

from __future__ import annotations

import logging

from django.db import transaction

from memories_app.documents.document_store import document_file, document_receive
from memories_app.documents.read_document import document_store
from memories_app.models import DocumentState, SourceDocument, Visibility
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.documents.sniffing import DocumentError
from memoryproject.foundation.integrations.whatsapp.base import MediaError
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.conversations.facade import (
    chats_keep,
    counted,
    document_failure,
    received_text,
    text_for,
)
from sessions_app.models import Turn
from sessions_app.models.chats import GODFATHER
from sessions_app.turns.pictures import fetched, media_of
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies, FileDependencies

logger = logging.getLogger(__name__)

MEGABYTE = 1024 * 1024
MAX_NAME_LENGTH = 100


def document_note(*, turn: Turn, lease: TurnLease, dependencies: Dependencies) -> str:
    """Store the document of the turn's message as memories; return the note for the answer.

    A second run for the same turn has no second effect.

    Raises LeaseLostError, DocumentBusyError and DatabaseError.
    """
    files = dependencies.files
    if files is None:
        return received_text("document", turn.chat.language)
    if turn.message is None or not dependencies.rules.longterm_enabled:
        return _say("document_not_kept", turn, files)
    try:
        document, known = _document_of(turn, lease, dependencies, files)
        if not known:
            document = _read(document, turn, lease, dependencies, files)
    except MediaError as error:
        logger.warning("The document of turn %s could not be fetched: %s", turn.turn_id, error)
        too_large = error.code == "too_large"
        return _say("document_too_large" if too_large else "document_unfetched", turn, files)
    except DocumentError as error:
        logger.warning("The document of turn %s could not be read: %s", turn.turn_id, error)
        return _say(document_failure(error.code), turn, files)
    if document.state == DocumentState.FAILED:
        return _say(document_failure(document.error_code), turn, files)
    return _report(document, turn, files, known=known)


def _document_of(
    turn: Turn, lease: TurnLease, dependencies: Dependencies, files: FileDependencies
) -> tuple[SourceDocument, bool]:
    """Return the document, and whether it was known before this message.

    A document that a killed worker left is found again. Its file is fetched again only where it is
    gone.
    """
    earlier = SourceDocument.objects.filter(source_message_id=turn.message_id).first()
    if earlier is not None:
        waits = document_file(files.folder, earlier.document_id).exists()
        if waits or earlier.state in (DocumentState.READY, DocumentState.FAILED):
            return earlier, False
    owner = turn.user_role == GODFATHER
    with (
        fetched(
            turn=turn,
            lease=lease,
            dependencies=dependencies,
            folder=files.folder,
            max_bytes=files.limits.size,
        ) as file,
        transaction.atomic(),
    ):
        chats_keep([turn.chat_id])
        received = document_receive(
            file=file,
            name=_name(turn),
            folder=files.folder,
            visibility=str(Visibility.OWNER if owner else Visibility.CHAT),
            chat_id=turn.chat_id,
            source_message_id=turn.message_id,
            actor=_person(turn),
        )
    return received.document, received.duplicate


def _read(
    document: SourceDocument,
    turn: Turn,
    lease: TurnLease,
    dependencies: Dependencies,
    files: FileDependencies,
) -> SourceDocument:
    return document_store(
        document_id=document.document_id,
        folder=files.folder,
        extractor=files.extractor,
        embedder=dependencies.embedder,
        actor=_person(turn),
        before_step=lease.renew,
    )


def _report(document: SourceDocument, turn: Turn, files: FileDependencies, *, known: bool) -> str:
    language = turn.chat.language
    sizes = [counted("passage", document.memories.count(), language)]
    if document.pages is not None:
        sizes.insert(0, counted("page", document.pages, language))
    name = "document_known" if known else "document_read"
    return _say(name, turn, files, size=", ".join(sizes))


def _say(name: str, turn: Turn, files: FileDependencies, **values: str) -> str:
    return text_for(
        name,
        turn.chat.language,
        file=_name(turn),
        limit=str(files.limits.size // MEGABYTE),
        pages=str(files.limits.pages),
        **values,
    )


def sent_document_name(filename: str, language: str) -> str:
    """Return the name that a sender gave a document, or a word for it in the chat's language.

    It is on one line, since it stands in a sentence.
    """
    name = " ".join("".join(char for char in filename if char.isprintable()).split())
    if name:
        return cut_at_word(name, MAX_NAME_LENGTH)
    return "הקובץ" if language == "he" else "the document"


def _name(turn: Turn) -> str:
    return sent_document_name(media_of(turn).filename, turn.chat.language)


def _person(turn: Turn) -> Actor:
    return Actor("person", chat_id=turn.chat_id)
