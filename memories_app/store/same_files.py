"""Files that two chats both have: a merge keeps one copy, and undoing it makes the other again.

What is kept for that are ids and times, and with the copy that stayed the name under which staff
uploaded the other one. The texts are those of the copy that stayed: where it was erased meanwhile,
the other one is gone, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, TypedDict
from uuid import UUID

from django.utils.dateparse import parse_datetime

from memories_app.embedding_models.facade import vectors_request
from memories_app.models import DocumentState, Memory, MemoryEmbedding, SourceDocument
from memories_app.store.memory_fields import passages_created

# By the time of its creation a passage is listed. Older records lack the last one.
TIMES = ("created_at", "last_told_at", "said_at")


class SameFile(TypedDict):
    """A copy that a merge removes.

    ``twin``: the id of the copy that stays. ``passages``: the id, pin and times of each passage, by
    its place in the file.
    """

    id: str
    twin: str
    created_at: str
    source_message_id: str | None
    uploaded_by: str
    passages: dict[str, tuple[Any, ...]]


def same_files_record(*, from_chat: UUID, to_chat: UUID) -> list[SameFile]:
    """Return the files of one chat that another one has, too, and note the names of uploaded ones.

    A name is a text, which goes with the file that stays if that is erased.
    """
    found = []
    for document in SourceDocument.objects.filter(chat_id=from_chat).order_by("pk"):
        twin = _twin(document, to_chat)
        if twin is None:
            continue
        found.append(_described(document, twin))
        if document.source_message_id is None:
            twin.copy_names[str(document.pk)] = document.name
            twin.save(update_fields=["copy_names"])
    return found


def same_files_restore(
    *, files: Sequence[SameFile], names: Mapping[str, str], from_chat: UUID, to_chat: UUID
) -> None:
    """Give a chat the copies back that a merge removed. Call it in a transaction.

    ``names``: the names of files by the ids of their messages.
    """
    for file in files:
        twin = SourceDocument.objects.filter(pk=file["twin"], chat_id=from_chat).first()
        # A file that is still being read exists once, on the disk.
        if twin is None or twin.state != DocumentState.READY or _twin(twin, to_chat) is not None:
            continue
        uploaded = twin.copy_names.pop(file["id"], twin.name)
        twin.save(update_fields=["copy_names"])
        document = copy(twin)
        document.copy_names = {}
        document.pk = UUID(file["id"])
        document.chat_id = to_chat
        document.created_at = parse_datetime(file["created_at"]) or twin.created_at
        source = file["source_message_id"]
        document.source_message_id = UUID(source) if source else None
        document.name = names[source] if source else uploaded
        document.uploaded_by = file["uploaded_by"]
        document.save(force_insert=True)
        _passages_restore(document, twin, file)


def _twin(document: SourceDocument, chat_id: UUID) -> SourceDocument | None:
    same = {"sha256": document.sha256, "visibility": document.visibility}
    return SourceDocument.objects.filter(chat_id=chat_id, **same).first()


def _described(document: SourceDocument, twin: SourceDocument) -> SameFile:
    source = document.source_message_id
    passages = document.memories.values_list("position", "pk", "pinned", *TIMES)
    return SameFile(
        id=str(document.pk),
        twin=str(twin.pk),
        created_at=document.created_at.isoformat(),
        source_message_id=str(source) if source else None,
        uploaded_by=document.uploaded_by,
        passages={
            str(position): (str(key), pinned, *(time.isoformat() for time in times))
            for position, key, pinned, *times in passages
        },
    )


def _passages_restore(document: SourceDocument, twin: SourceDocument, file: SameFile) -> None:
    passages = file["passages"]
    copied = dict(_copies(document, twin, passages))
    memories = list(copied.values())
    Memory.objects.bulk_create(memories)
    passages_created(memories)
    vectors_request(memories)
    vectors = MemoryEmbedding.objects.filter(memory__in=list(copied))
    MemoryEmbedding.objects.bulk_create(
        MemoryEmbedding(memory=copied[each.memory_id], model=each.model, vector=each.vector)
        for each in vectors
    )


def _copies(
    document: SourceDocument, twin: SourceDocument, passages: dict[str, Any]
) -> Iterator[tuple[UUID, Memory]]:
    """Yield the passages of the restored copy by the ids of those of the other."""
    for there in twin.memories.order_by("position"):
        known = passages.get(str(there.position))
        if known is None:
            continue
        passage = copy(there)
        passage.pk, passage.pinned = UUID(known[0]), known[1]
        for name, value in zip(TIMES, known[2:], strict=False):
            setattr(passage, name, parse_datetime(value))
        passage.document, passage.chat_id = document, document.chat_id
        passage.source_message_id = document.source_message_id
        yield there.pk, passage
