"""Collect what is deleted with an object, and the chats that may have repeated its texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from memories_app.facts.facade import fact_key
from memories_app.models import Memory, MemoryRevision, MemorySource, MergeProposal, SourceDocument
from memories_app.store.facade import with_older
from memoryproject.foundation.text.fragments import Fragments, is_single_informative_word
from sessions_app.conversations.facade import exposure_of
from sessions_app.models import Message

# Clock skew and transactions: a derived record may have a slightly earlier time.
MARGIN = timedelta(minutes=1)


@dataclass
class DeletionPlan:
    """The rows, texts and scopes that a forgetting concerns.

    It holds the rows to delete, the texts to redact everywhere else, and the facts that get
    tombstones (scope and text). ``chats`` may have repeated the texts since ``since``.

    ``erased`` are the ids of whole sessions and chats that go with their contents. ``names`` are
    all addresses and names of the erased person. ``backups`` are removed as a whole.
    """

    memories: set[UUID] = field(default_factory=set)
    messages: set[UUID] = field(default_factory=set)
    documents: set[UUID] = field(default_factory=set)
    texts: dict[str, None] = field(default_factory=dict)
    facts: set[tuple[str, str]] = field(default_factory=set)
    chats: set[UUID] = field(default_factory=set)
    since: datetime | None = None
    erased: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    backups: set[str] = field(default_factory=set)

    def ids(self) -> set[str]:
        """Return the ids of everything that goes."""
        gone = self.memories | self.messages | self.documents
        return {str(key) for key in gone} | self.erased

    def words(self) -> Fragments:
        """Return the one-word texts; they are searched only in what had the fact in reach."""
        return Fragments(
            (text for text in self.texts if is_single_informative_word(text)), fewest_words=1
        )

    def add_memories(self, memory_ids: Collection[UUID]) -> None:
        """Add memories, the memories they superseded, and messages that state nothing else."""
        found = Memory.objects.filter(pk__in=with_older(list(memory_ids))).defer("terms")
        fresh = [memory for memory in found if memory.pk not in self.memories]
        if not fresh:
            return
        self.memories |= {memory.pk for memory in fresh}
        self._add_wordings(fresh)
        self.chats |= set(exposure_of(memory.pk for memory in fresh))
        self._add_sources(fresh, {memory.fact_key for memory in fresh})

    def add_messages(self, message_ids: Collection[UUID], *, texts: bool = True) -> None:
        """Add messages, the memories learned only from them, and the documents attached to them.

        Without ``texts`` only their recalled texts are searched elsewhere.
        """
        found = Message.objects.filter(pk__in=list(message_ids)).defer("terms")
        fresh = [message for message in found if message.pk not in self.messages]
        if not fresh:
            return
        ids = [message.pk for message in fresh]
        self.messages |= set(ids)
        for message in fresh:
            told = [message.content, *(entry["content"] for entry in message.history)]
            for text in told if texts else []:
                self._add_text(text, message.received_at, [message.chat_id])
        error_of_response = Q(tellings__source_message_id__in=ids) | Q(source_message_id__in=ids)
        learned = Memory.objects.filter(error_of_response).distinct()
        elsewhere = MemorySource.objects.exclude(source_message_id__in=ids)
        alone = learned.exclude(tellings__in=elsewhere).filter(document__isnull=True)
        self.add_memories(list(alone.values_list("pk", flat=True)))
        brought = SourceDocument.objects.filter(source_message_id__in=ids)
        self.add_documents(list(brought.values_list("pk", flat=True)))

    def add_documents(self, document_ids: Collection[UUID]) -> None:
        """Add documents with their passages.

        Only passages that were shown to somebody are searched elsewhere: the others are full of
        words that anybody might say.
        """
        ids = set(document_ids) - self.documents
        self.documents |= ids
        passages = Memory.objects.filter(document__in=ids).defer("terms")
        scopes = {memory.pk: (memory.scope, memory.content) for memory in passages.iterator()}
        self.memories |= set(scopes)
        self.facts |= set(scopes.values())
        where = exposure_of(scopes)
        self.chats |= set(where)
        told = {memory_id for memory_ids in where.values() for memory_id in memory_ids}
        self._add_wordings(list(passages.filter(pk__in=told)))
        self.add_memories(set(with_older(list(scopes))) - set(scopes))

    def _add_wordings(self, memories: Sequence[Memory]) -> None:
        """Add the memories' current, earlier and proposed texts."""
        ids = [memory.pk for memory in memories]
        for memory in memories:
            self._add_text(memory.content, memory.created_at, [memory.chat_id])
            self.facts.add((memory.scope, memory.content))
        for revision in MemoryRevision.objects.filter(memory__in=ids).select_related("memory"):
            self._add_text(revision.content, revision.memory.created_at, [])
            self.facts.add((revision.memory.scope, revision.content))
        for content in MergeProposal.objects.filter(parts__memory__in=ids).values_list("content"):
            self.texts.setdefault(content[0])

    def _add_sources(self, memories: Sequence[Memory], keys: Collection[str]) -> None:
        """Add the messages that stated these memories.

        A message that states only the fact is deleted with its confirmation.
        """
        ids = [memory.pk for memory in memories]
        told = MemorySource.objects.filter(memory__in=ids)
        sources = {*told.values_list("source_message_id", flat=True)}
        sources |= {memory.source_message_id for memory in memories}
        said = Message.objects.filter(pk__in=[key for key in sources if key is not None])
        nothing_else = []
        for message in said.defer("terms"):
            self.chats.add(message.chat_id)
            self._reach_back(message.received_at)
            is_command = message.metadata.get("command") == "remember"
            if is_command or fact_key(message.content) in keys:
                nothing_else.append(message.pk)
        confirmations = Message.objects.filter(
            answers__in=nothing_else, metadata__has_key="system_text"
        )
        self.messages |= {*nothing_else, *confirmations.values_list("pk", flat=True)}
        if any(is_single_informative_word(memory.content) for memory in memories):
            # The single word is searched in few places, so the texts around it are searched
            # separately.
            gone = Message.objects.filter(pk__in=self.messages)
            self.texts.update(dict.fromkeys(gone.values_list("content", flat=True)))

    def _add_text(self, text: str, at: datetime, chats: Iterable[UUID | None]) -> None:
        self.texts.setdefault(text)
        self.chats |= {chat for chat in chats if chat is not None}
        self._reach_back(at)

    def _reach_back(self, at: datetime) -> None:
        self.since = min(self.since or at, at - MARGIN)
