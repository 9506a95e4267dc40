"""Plan what goes with an object of each kind, and where else its text may stand."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q

from memories_app.facts.facts import fact_key
from memories_app.memory_documents.document_rows import document_texts
from memories_app.models import Memory, MemoryRevision, MemorySource, MergeProposal, SourceDocument
from memories_app.store import keyed, retract
from sessions_app.conversations.redact_derived import exposure_of
from sessions_app.models import Chat, ChatSession, ForgottenKind, Message

# Clock skew and transactions: a derived record may have a slightly earlier time.
MARGIN = timedelta(minutes=1)
# The texts of a longer session are searched only in the answers that were given them.
MAX_TEXTS = 2_000

# Where the objects of each kind are; memory documents belong to another feature.
MODELS: dict[str, type[Any]] = {
    str(ForgottenKind.MEMORY): Memory,
    str(ForgottenKind.DOCUMENT): SourceDocument,
    str(ForgottenKind.MESSAGE): Message,
    str(ForgottenKind.MESSAGES): ChatSession,
    str(ForgottenKind.SESSION): ChatSession,
    str(ForgottenKind.CHAT): Chat,
}


@dataclass
class DeletionPlan:
    """The rows, texts and scopes that a forgetting concerns.

    It holds the rows to delete and the facts that get tombstones (scope and text). ``chats`` may
    have repeated the texts since ``since``.

    ``texts`` are all that is erased. ``texts_by_id`` maps the id of each memory and message to its
    texts, and ``texts_by_chat`` each chat to the texts that were said or shown there: a record can
    only derive from a text that it was given.

    ``memory_documents`` hold texts of programs, which are never in chats.

    ``erased`` are the ids of whole sessions and chats that go with their contents. ``names`` are
    all addresses and names of the erased person. ``backups`` are removed as a whole.
    """

    memories: set[UUID] = field(default_factory=set)
    messages: set[UUID] = field(default_factory=set)
    documents: set[UUID] = field(default_factory=set)
    memory_documents: set[UUID] = field(default_factory=set)
    texts: dict[str, None] = field(default_factory=dict)
    texts_by_id: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    texts_by_chat: defaultdict[UUID, set[str]] = field(default_factory=lambda: defaultdict(set))
    facts: set[tuple[str, str]] = field(default_factory=set)
    chats: set[UUID] = field(default_factory=set)
    since: datetime | None = None
    erased: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    backups: set[str] = field(default_factory=set)

    def ids(self) -> set[str]:
        """Return the ids of everything that goes."""
        objects = self.memories | self.messages | self.documents | self.memory_documents
        return {str(key) for key in objects} | self.erased

    def add_memories(self, memory_ids: Collection[UUID]) -> None:
        """Add memories, the memories they superseded, and messages that state nothing else."""
        found = Memory.objects.filter(pk__in=retract.with_older(list(memory_ids))).defer("terms")
        fresh = [memory for memory in found if memory.pk not in self.memories]
        if not fresh:
            return
        self.memories |= {memory.pk for memory in fresh}
        self._add_wordings(fresh)
        self._add_exposure(exposure_of(memory.pk for memory in fresh))
        self._add_sources(fresh, {memory.fact_key for memory in fresh})

    def add_messages(self, message_ids: Collection[UUID]) -> None:
        """Add messages, the memories learned only from them, and the documents attached to them.

        More than ``MAX_TEXTS`` are searched only in the answers that were given them.
        """
        found = Message.objects.filter(pk__in=list(message_ids)).defer("terms")
        fresh = [message for message in found if message.pk not in self.messages]
        if not fresh:
            return
        ids = [message.pk for message in fresh]
        self.messages |= set(ids)
        for message in fresh:
            wordings = [message.content, *(entry["content"] for entry in message.history)]
            self.texts_by_id[str(message.pk)].update(wordings)
            self.chats.add(message.chat_id)
            self._reach_back(message.received_at)
            for text in wordings if len(fresh) <= MAX_TEXTS else []:
                self.texts.setdefault(text)
                self.texts_by_chat[message.chat_id].add(text)
        mentioned_there = Q(tellings__source_message_id__in=ids) | Q(source_message_id__in=ids)
        memories = Memory.objects.filter(mentioned_there).distinct()
        elsewhere = MemorySource.objects.exclude(source_message_id__in=ids)
        alone = memories.exclude(tellings__in=elsewhere).filter(document__isnull=True)
        self.add_memories(list(alone.values_list("pk", flat=True)))
        documents = SourceDocument.objects.filter(source_message_id__in=ids)
        self.add_documents(list(documents.values_list("pk", flat=True)))

    def add_documents(self, document_ids: Collection[UUID]) -> None:
        """Add documents with their passages.

        Only passages that were shown to somebody are searched elsewhere: the others are full of
        words that anybody might say.
        """
        there = SourceDocument.objects.filter(pk__in=set(document_ids) - self.documents)
        ids = list(there.values_list("pk", flat=True))
        self.documents |= set(ids)
        passages = Memory.objects.filter(document__in=ids).defer("terms")
        scopes = {memory.pk: (memory.scope, memory.content) for memory in passages.iterator()}
        self.memories |= set(scopes)
        self.facts |= set(scopes.values())
        where = exposure_of(scopes)
        shown = {memory_id for memory_ids in where.values() for memory_id in memory_ids}
        self._add_wordings(list(passages.filter(pk__in=shown)))
        self._add_exposure(where)
        self.add_memories(set(retract.with_older(list(scopes))) - set(scopes))

    def _add_wordings(self, memories: Sequence[Memory]) -> None:
        """Add the memories' current, earlier and proposed texts."""
        by_id = {memory.pk: memory for memory in memories}
        wordings = [(memory, memory.content) for memory in memories]
        values = [(memory, memory.value) for memory in memories]
        revisions = MemoryRevision.objects.filter(memory__in=by_id).order_by()
        for key, content, value in revisions.values_list("memory", "content", "value"):
            wordings.append((by_id[key], content))
            values.append((by_id[key], value))
        self.facts |= {(memory.scope, content) for memory, content in wordings if content}
        wordings += [(memory, keyed.value_text(value)) for memory, value in values if value]
        proposals = MergeProposal.objects.filter(parts__memory__in=by_id)
        wordings += [
            (by_id[key], content)
            for key, content in proposals.values_list("parts__memory", "content")
            if key in by_id
        ]
        for memory, content in wordings:
            self.texts.setdefault(content)
            self.texts_by_id[str(memory.pk)].add(content)
            self._reach_back(memory.created_at)
            if memory.chat_id is not None:
                self.chats.add(memory.chat_id)
                self.texts_by_chat[memory.chat_id].add(content)

    def _add_exposure(self, where: dict[UUID, set[UUID]]) -> None:
        """Add the chats in which answers were given these memories, or listed them."""
        self.chats |= set(where)
        for chat_id, memory_ids in where.items():
            for memory_id in memory_ids:
                self.texts_by_chat[chat_id] |= self.texts_by_id[str(memory_id)]

    def _add_sources(self, memories: Sequence[Memory], keys: Collection[str]) -> None:
        """Add the messages that stated these memories.

        A message that states only the fact is deleted with its confirmation.
        """
        by_source: defaultdict[UUID, set[str]] = defaultdict(set)
        recorded = MemorySource.objects.filter(memory__in=[memory.pk for memory in memories])
        pairs = [*recorded.values_list("source_message_id", "memory")]
        pairs += [(memory.source_message_id, memory.pk) for memory in memories]
        for source, memory_id in pairs:
            if source is not None:
                by_source[source] |= self.texts_by_id[str(memory_id)]
        nothing_else = []
        for message in Message.objects.filter(pk__in=by_source).defer("terms"):
            self.chats.add(message.chat_id)
            self._reach_back(message.received_at)
            is_command = message.metadata.get("command") == "remember"
            if is_command or fact_key(message.content) in keys:
                nothing_else.append(message.pk)
                self.texts_by_id[str(message.pk)] |= {message.content, *by_source[message.pk]}
        confirmations = Message.objects.filter(
            answers__in=nothing_else, metadata__has_key="system_text"
        )
        for key, content in confirmations.values_list("pk", "content"):
            self.texts_by_id[str(key)].add(content)
        self.messages |= {*nothing_else, *confirmations.values_list("pk", flat=True)}

    def _reach_back(self, at: datetime) -> None:
        self.since = min(self.since or at, at - MARGIN)


class NothingToForgetError(Exception):
    """The object doesn't exist, or not any more."""


def one_plan(
    kind: str, add: Callable[[DeletionPlan, Collection[UUID]], None]
) -> Callable[[UUID], DeletionPlan]:
    """Return the plan of one object of this kind; ``add`` is the method that adds it to a plan."""

    def plan(object_id: UUID) -> DeletionPlan:
        made = DeletionPlan()
        add(made, [object_id])
        if not made.ids():
            raise NothingToForgetError(f"There is no {kind} {object_id}.")
        return made

    return plan


def memory_document_plan(document_id: UUID) -> DeletionPlan:
    """Plan a memory document with all its versions."""
    texts = document_texts(document_id)
    if texts is None:
        raise NothingToForgetError(f"There is no memory document {document_id}.")
    return DeletionPlan(memory_documents={document_id}, texts=dict.fromkeys(texts))


def session_plan(session_id: UUID) -> DeletionPlan:
    """Plan a session with its messages, and the memories learned only in it."""
    session: ChatSession = _existing(str(ForgottenKind.SESSION), session_id)
    messages = list(Message.objects.filter(session=session_id).values_list("pk", flat=True))
    plan = DeletionPlan(chats={session.chat_id}, erased={str(session_id)})
    plan.add_messages(messages)
    return plan


def messages_plan(session_id: UUID) -> DeletionPlan:
    """Plan all messages of a session; the empty session stays and continues its numbers."""
    plan = session_plan(session_id)
    if not plan.messages:
        raise NothingToForgetError(f"There is no message in session {session_id}.")
    plan.erased.clear()
    return plan


def chat_plan(chat_id: UUID) -> DeletionPlan:
    """Plan the memories and documents that came from a chat, to find their texts elsewhere."""
    chat: Chat = _existing(str(ForgottenKind.CHAT), chat_id)
    plan = DeletionPlan(chats={chat_id}, erased=_within(chat), names=_names(chat))
    own = Memory.objects.filter(chat_id=chat_id, document__isnull=True)
    plan.add_memories(list(own.values_list("pk", flat=True)))
    documents = SourceDocument.objects.filter(chat_id=chat_id)
    plan.add_documents(list(documents.values_list("pk", flat=True)))
    return plan


def _existing(kind: str, key: UUID) -> Any:
    """Return the object. Raises NothingToForgetError if it doesn't exist."""
    found = MODELS[kind]._default_manager.filter(pk=key).first()
    if found is None:
        raise NothingToForgetError(f"There is no {kind} {key}.")
    return found


def _within(chat: Chat) -> set[str]:
    """Return the ids of a chat and of everything in it."""
    inside = {str(chat.pk)}
    keys = (("sessions", "pk"), ("messages", "pk"), ("turns", "turn_id"))
    for name, key in keys:
        inside |= {str(each) for each in getattr(chat, name).values_list(key, flat=True)}
    return inside


def _names(chat: Chat) -> set[str]:
    """Return the names and addresses of the person, and the number without the address's suffix."""
    names = {chat.whatsapp_chat, chat.client_phone}
    names |= {chat.client_name.strip(), chat.staff_name.strip()}
    names |= set(chat.addresses.values_list("address", flat=True))
    numbers = {name.partition("@")[0] for name in names if "@" in name}
    return (names | numbers) - {""}
