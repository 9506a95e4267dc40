"""Find the scopes of a forgetting.

They are the chats in which its texts occur or may have been repeated, and the scopes in which its
memories are visible.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q

from memories_app.models import Memory, MemoryRevision, SourceDocument
from memories_app.store.facade import scope_of, scopes_lock
from sessions_app.conversations.facade import Held, Scopes, chat_scope
from sessions_app.forgetting.deletion_plan import DeletionPlan
from sessions_app.models import Message, TranscriptBatch, Turn


def scopes_of(doomed: DeletionPlan, *, keep_turn: int | None = None) -> Scopes:
    """Return the current scopes of a deletion plan. ``keep_turn`` is the turn that asks for it."""
    error_of_response = Q(pk__in=doomed.memories) | Q(
        tellings__source_message_id__in=doomed.messages
    )
    error_of_response |= Q(source_message_id__in=doomed.messages)
    memories = set(Memory.objects.filter(error_of_response).values_list("pk", flat=True))
    chats = doomed.chats | _chats_of(doomed.messages)
    chats |= set(Turn.objects.filter(pk=keep_turn).values_list("chat_id", flat=True))
    names = {chat_scope(chat_id) for chat_id in chats} | _memory_scopes(memories)
    documents = SourceDocument.objects.filter(pk__in=doomed.documents)
    for visibility, chat_id in documents.values_list("visibility", "chat_id"):
        names.add(scope_of(visibility, chat_id))
    batches = TranscriptBatch.objects.filter(chat__in=chats)
    backups = batches.order_by().values_list("backup", flat=True).distinct()
    return Scopes(frozenset(names), bool(memories or doomed.documents), frozenset(backups))


def memories_hold(doomed: DeletionPlan, held: Held) -> None:
    """Lock the memories that go, and check that no other scope can see them now.

    An edit or a merge of chats, which takes none of our locks, may have moved them. Raises
    ScopesGrewError.
    """
    memories = Memory.objects.filter(pk__in=doomed.memories)
    scopes_lock(memories.values_list("scope", flat=True))
    list(memories.select_for_update().order_by("pk").values_list("pk", flat=True))
    held.require(Scopes(frozenset(_memory_scopes(doomed.memories))))


def _chats_of(messages: Collection[UUID]) -> set[UUID]:
    found = Message.objects.filter(pk__in=messages)
    return set(found.order_by().values_list("chat_id", flat=True).distinct())


def _memory_scopes(memories: Collection[UUID]) -> set[str]:
    """Return the scopes in which these memories are visible now, or were before an edit.

    An answer that is being made now may have read them there.
    """
    found = Memory.objects.filter(pk__in=memories)
    scopes = set(found.order_by().values_list("scope", flat=True).distinct())
    before = MemoryRevision.objects.filter(memory__in=memories).order_by()
    for visibility, chat_id in before.values_list("visibility", "memory__chat_id").distinct():
        scopes.add(scope_of(visibility, chat_id))
    return scopes
