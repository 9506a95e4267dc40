"""Files that two chats both have: a merge keeps one copy, and undoing it makes the other again.

What is kept for that are ids and times, and with the copy that stayed the name under which staff
uploaded the other one. The texts are those of the copy that stayed: where it was erased meanwhile,
the other one is gone, too.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, TypedDict
from uuid import UUID

from django.db.models import Max, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories_app.embedding_models.vectors import vectors_request
from memories_app.models import (
    DocumentState,
    Memory,
    MemoryEmbedding,
    MemoryStatus,
    RevisionReason,
    SourceDocument,
    Visibility,
)
from memories_app.store import memory_fields
from memories_app.visibility import scope_of
from memoryproject.foundation.audit.audit_events import SYSTEM

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
    memory_fields.passages_created(memories)
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


# Move memories and documents from one chat to another.


def memories_move(*, from_chat: UUID, to_chat: UUID) -> int:
    """Move all memories of one chat to another; return their number.

    A fact of both chats becomes one: the moved memory is superseded by the existing one, which
    receives the mentions of both. Call it in a transaction.
    """
    scopes = [scope_of(str(Visibility.CHAT), chat) for chat in (from_chat, to_chat)]
    memory_fields.scopes_lock(scopes)
    there = {memory.fact_key: memory for memory in _facts(scopes[1])}
    moved = _facts(scopes[0])
    for memory in moved.filter(fact_key__in=list(there)):
        kept = there[memory.fact_key]
        memory_fields.revisions_add([memory], reason=RevisionReason.MERGED, actor=SYSTEM)
        memory.status = MemoryStatus.SUPERSEDED
        memory.superseded_by = kept
        memory.superseded_at = timezone.now()
        memory.save()
        kept.told_count += memory.told_count
        kept.last_told_at = max(kept.last_told_at, memory.last_told_at)
        kept.pinned = kept.pinned or memory.pinned
        kept.save()
    documents_move(from_chat=from_chat, to_chat=to_chat)
    moved_ids = list(Memory.objects.filter(chat_id=from_chat).values_list("pk", flat=True))
    Memory.objects.filter(pk__in=moved_ids).update(chat_id=to_chat)
    memory_fields.memories_moved(memory_ids=moved_ids)
    return len(moved_ids)


def memories_give(
    *,
    from_chat: UUID,
    to_chat: UUID,
    memories: Collection[UUID],
    documents: Collection[UUID],
    joined: Mapping[UUID, UUID],
    pinned: Collection[UUID] = (),
) -> None:
    """Move some memories and documents of one chat to another, where nothing is yet.

    ``joined``: memories that a merge of the two replaced by another one of the same fact; they are
    in force again, and the other one loses their mentions, and its pin if it is among ``pinned``:
    it had none before the merge. Call it in a transaction.
    """
    memory_fields.scopes_lock(
        [scope_of(str(Visibility.CHAT), chat) for chat in (from_chat, to_chat)]
    )
    SourceDocument.objects.filter(pk__in=documents, chat_id=from_chat).update(chat_id=to_chat)
    rows = Memory.objects.filter(pk__in=memories, chat_id=from_chat)
    moved = list(rows.values_list("pk", flat=True))
    rows.update(chat_id=to_chat)
    for key, other in joined.items():
        replaced = Memory.objects.filter(pk=key, chat_id=to_chat, superseded_by=other)
        memory = replaced.filter(status=MemoryStatus.SUPERSEDED).first()
        if memory is not None:
            _reinstate(memory, unpin=other in pinned)
    memory_fields.memories_moved(memory_ids=moved)


def _reinstate(memory: Memory, *, unpin: bool) -> None:
    """Put a memory in force again, unless its new scope has the fact already."""
    if _facts(memory.scope).filter(fact_key=memory.fact_key).exists():
        return
    other = memory.superseded_by
    memory_fields.revisions_add([memory], reason=RevisionReason.UPDATED, actor=SYSTEM)
    memory.status = MemoryStatus.ACTIVE
    memory.superseded_by = memory.superseded_at = None
    memory.save()
    if other is not None:
        other.told_count = max(1, other.told_count - memory.told_count)
        last = other.tellings.aggregate(last=Max("told_at"))["last"]
        other.last_told_at = last or other.last_told_at
        other.pinned = other.pinned and not unpin
        other.save()


def facts_shared(*, one: UUID, other: UUID) -> int:
    """Return how many facts two chats both know: a merge makes one memory of each."""
    scopes = [scope_of(str(Visibility.CHAT), chat) for chat in (one, other)]
    return _facts(scopes[0]).filter(fact_key__in=_facts(scopes[1]).values("fact_key")).count()


def _facts(scope: str) -> QuerySet[Memory]:
    """Return the memories in force of one scope, without the passages of documents."""
    return Memory.objects.filter(status=MemoryStatus.ACTIVE, document__isnull=True, scope=scope)


def documents_move(*, from_chat: UUID, to_chat: UUID) -> None:
    """Move one chat's documents to another, in the caller's transaction.

    A document that both chats have is kept once.
    """
    for document in SourceDocument.objects.filter(chat_id=from_chat):
        if _twin(document, to_chat) is not None:
            memory_fields.passages_forgotten(document.document_id)
            document.delete()
        else:
            SourceDocument.objects.filter(pk=document.pk).update(chat_id=to_chat)
