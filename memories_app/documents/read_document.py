"""Read a received document and store its text as memories."""

import logging
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from django.db import transaction

from memories_app.documents.document_store import (
    WAITING,
    DocumentLease,
    document_audit,
    document_claim,
    document_file,
    file_remove,
)
from memories_app.embedding_models.vectors import vector_due, vectors_request
from memories_app.models import DocumentState, Memory, MemoryEmbedding, SourceDocument
from memories_app.store.memory_fields import content_hash, passages_created
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.documents import sniffing
from memoryproject.foundation.integrations.embedders.base import (
    Embedder,
    EmbedderError,
    embed_awaited,
)
from memoryproject.foundation.integrations.retry import do_nothing
from memoryproject.foundation.text import chunks, terms

logger = logging.getLogger(__name__)

# A file that has crashed its worker this often is not tried again.
MAX_ATTEMPTS = 3
ROWS_AT_ONCE = 500


# A passage, and the page on which it begins.
Cut = tuple[chunks.Passage, int | None]


def document_store(
    *,
    document_id: UUID,
    folder: Path,
    extractor: sniffing.TextExtractor,
    embedder: Embedder,
    actor: Actor = SYSTEM,
    before_step: Callable[[], None] = do_nothing,
) -> SourceDocument:
    """Read a document, store its text and return it as ``ready``, or as ``failed`` with a reason.

    A document in one of these states is not read again, so a killed worker can simply start
    over. The file is deleted afterwards.

    ``before_step`` is called before each step that takes time. Raises DocumentBusyError;
    SourceDocument.DoesNotExist; DocumentError if a retry may help; DatabaseError.
    """
    document = SourceDocument.objects.get(pk=document_id)
    if document.state not in WAITING:
        return document
    lease = document_claim(document)
    try:
        before_step()
        try:
            if document.attempts >= MAX_ATTEMPTS:
                raise sniffing.DocumentError("damaged", ErrorText("document_tries_ended"))
            found = _extracted(document_file(folder, document_id), extractor)
        except sniffing.DocumentError as error:
            if not error.permanent:
                raise
            return _fail(document, lease, error, folder)
        whole = "\n".join(section.text for section in found.sections)
        cuts = _with_pages(found, chunks.cut_text(whole))
        before_step()
        vectors, warnings = _vectors(cuts, embedder, lease)
        with transaction.atomic():
            document = lease.lock()
            _insert(document, cuts, vectors, embedder)
            _describe(document, found, len(whole), warnings)
            counts = {"memories": len(cuts), "pages": found.pages}
            document_audit("document.store", document, actor, **counts)
        file_remove(folder, document_id)
        logger.info("Document %s was stored as %d memories.", document_id, len(cuts))
        return document
    finally:
        lease.release()


def _extracted(path: Path, extractor: sniffing.TextExtractor) -> sniffing.ExtractedText:
    try:
        return extractor.extract(path)
    except FileNotFoundError:
        raise sniffing.DocumentError("missing") from None


def _with_pages(found: sniffing.ExtractedText, passages: list[chunks.Passage]) -> list[Cut]:
    """Return the passages with the pages on which they begin."""
    starts: list[int] = []
    place = 0
    for section in found.sections:
        starts.append(place)
        place += len(section.text) + 1
    pages = [section.page for section in found.sections]
    return [(each, pages[bisect_right(starts, each.start) - 1]) for each in passages]


def _vectors(
    cuts: list[Cut], embedder: Embedder, lease: DocumentLease
) -> tuple[list[list[float] | None], list[str]]:
    """Return a vector for each of a few passages; a worker makes those of many.

    If the embedder fails, return no vectors and log a warning. Lexical search still finds the
    passages.
    """
    lease.renew()
    try:
        return embed_awaited(embedder, [passage.text for passage, _ in cuts]), []
    except EmbedderError as error:
        logger.warning("Document %s has no vectors: %s", lease.row.pk, error)
        return [None] * len(cuts), [ErrorText("document_without_vectors")]


def _insert(
    document: SourceDocument, cuts: list[Cut], vectors: list[list[float] | None], embedder: Embedder
) -> None:
    memories = [_memory(document, position, cut) for position, cut in enumerate(cuts, start=1)]
    for memory, vector in zip(memories, vectors, strict=True):
        vector_due(memory, vector)
    Memory.objects.bulk_create(memories, batch_size=ROWS_AT_ONCE)
    passages_created(memories)
    vectors_request(memories)
    MemoryEmbedding.objects.bulk_create(
        [
            MemoryEmbedding(memory=memory, model=embedder.model_id, vector=vector)
            for memory, vector in zip(memories, vectors, strict=True)
            if vector is not None
        ],
        batch_size=ROWS_AT_ONCE,
    )


def _memory(document: SourceDocument, position: int, cut: Cut) -> Memory:
    content, page = cut[0].text, cut[1]
    indexed = terms.index_text(content)
    about = {"document": document.name}
    return Memory(
        content=content,
        content_hash=content_hash(content),
        fact_key=content_hash(content),
        type="document",
        source="document",
        visibility=document.visibility,
        chat_id=document.chat_id,
        source_message_id=document.source_message_id,
        metadata=about if page is None else {**about, "page": page},
        terms=indexed.terms,
        term_count=indexed.length,
        document=document,
        position=position,
    )


def _describe(
    document: SourceDocument, found: sniffing.ExtractedText, characters: int, warnings: list[str]
) -> None:
    """Set the result. Only the name distinguishes Markdown from other text."""
    is_markdown = found.media_type == sniffing.TEXT and document.name.lower().endswith(
        (".md", ".markdown")
    )
    document.state = DocumentState.READY
    document.media_type = sniffing.MARKDOWN if is_markdown else found.media_type
    document.title = found.title
    document.pages = found.pages
    document.characters = characters
    document.warnings = [*found.warnings, *warnings]
    document.error = document.error_code = ""
    document.lease_token = document.lease_until = None
    document.save()


def _fail(
    document: SourceDocument, lease: DocumentLease, error: sniffing.DocumentError, folder: Path
) -> SourceDocument:
    logger.warning("Document %s can't be read: %s", document.document_id, error)
    lease.held().update(state=DocumentState.FAILED, error=error_text(error), error_code=error.code)
    file_remove(folder, document.document_id)
    document.refresh_from_db()
    return document
