"""Plan what is deleted with an object of each kind.

A plan only reads. It raises NothingToForgetError if the object doesn't exist (any more).
"""

from __future__ import annotations

from uuid import UUID

from memories_app.models import Memory, SourceDocument
from sessions_app.forgetting.deletion_plan import DeletionPlan
from sessions_app.forgetting.sweep import BESIDE
from sessions_app.models import Chat, ChatSession, Message, TurnReplay

# The texts of a longer session are searched elsewhere only if they were recalled.
MAX_TEXTS = 2_000


class NothingToForgetError(Exception):
    """The object doesn't exist, or not any more."""


def memory_plan(memory_id: UUID) -> DeletionPlan:
    """Plan a memory, the memories it superseded, and messages that state only this fact.

    The confirmations of those messages go, too.
    """
    _there(Memory.objects.filter(pk=memory_id).exists(), "memory", memory_id)
    doomed = DeletionPlan()
    doomed.add_memories([memory_id])
    return doomed


def message_plan(message_id: UUID) -> DeletionPlan:
    """Plan a message, the memories learned only from it, and the documents attached to it."""
    _there(Message.objects.filter(pk=message_id).exists(), "message", message_id)
    doomed = DeletionPlan()
    doomed.add_messages([message_id])
    return doomed


def document_plan(document_id: UUID) -> DeletionPlan:
    """Plan a document with its passages."""
    found = SourceDocument.objects.filter(pk=document_id).exists()
    _there(found, "document", document_id)
    doomed = DeletionPlan()
    doomed.add_documents([document_id])
    return doomed


def session_plan(session_id: UUID) -> DeletionPlan:
    """Plan a session with its messages, and the memories learned only in it."""
    session = ChatSession.objects.filter(pk=session_id).first()
    if session is None:
        raise NothingToForgetError(f"There is no session {session_id}.")
    messages = list(Message.objects.filter(session=session_id).values_list("pk", flat=True))
    doomed = DeletionPlan(chats={session.chat_id}, erased={str(session_id)})
    doomed.add_messages(messages, texts=len(messages) <= MAX_TEXTS)
    if len(messages) > MAX_TEXTS:
        _add_recalled(doomed, session_id)
    return doomed


def messages_plan(session_id: UUID) -> DeletionPlan:
    """Plan all messages of a session; the empty session stays and continues its numbers."""
    doomed = session_plan(session_id)
    if not doomed.messages:
        raise NothingToForgetError(f"There is no message in session {session_id}.")
    doomed.erased.clear()
    return doomed


def chat_plan(chat_id: UUID) -> DeletionPlan:
    """Plan the memories and documents that came from a chat, to find their texts elsewhere."""
    chat = Chat.objects.filter(pk=chat_id).first()
    if chat is None:
        raise NothingToForgetError(f"There is no chat {chat_id}.")
    doomed = DeletionPlan(chats={chat_id}, erased=_within(chat), names=_names(chat))
    own = Memory.objects.filter(chat_id=chat_id, document__isnull=True)
    doomed.add_memories(list(own.values_list("pk", flat=True)))
    brought = SourceDocument.objects.filter(chat_id=chat_id)
    doomed.add_documents(list(brought.values_list("pk", flat=True)))
    return doomed


def _there(found: bool, what: str, key: UUID) -> None:
    if not found:
        raise NothingToForgetError(f"There is no {what} {key}.")


def _within(chat: Chat) -> set[str]:
    """Return the ids of a chat and of everything in it."""
    inside = {str(chat.pk)}
    keys = (("sessions", "pk"), ("messages", "pk"), ("turns", "turn_id"))
    for name, key in keys:
        inside |= {str(each) for each in getattr(chat, name).values_list(key, flat=True)}
    return inside


def _names(chat: Chat) -> set[str]:
    """Return the names and addresses of the person, and the number without the address's suffix."""
    names = {chat.whatsapp_chat, chat.client_name.strip(), chat.client_phone}
    names |= set(chat.addresses.values_list("address", flat=True))
    numbers = {name.partition("@")[0] for name in names if "@" in name}
    return (names | numbers) - {""}


def _add_recalled(doomed: DeletionPlan, session_id: UUID) -> None:
    """Add the texts of a long session that answers outside of it had in reach."""
    others = TurnReplay.objects.filter(turn__chat__sessions=session_id)
    others = others.exclude(turn__session=session_id)
    others = others.filter(recalled__contains=[{"session_id": str(session_id)}])
    for recalled in others.values_list("recalled", flat=True).iterator():
        for entry in recalled:
            if entry.get("session_id") == str(session_id):
                beside = [entry[name]["content"] for name in BESIDE if name in entry]
                doomed.texts.update(dict.fromkeys([entry["content"], *beside]))
    session = ChatSession.objects.get(pk=session_id)
    doomed.chats.add(session.chat_id)
    doomed.since = min(doomed.since or session.created_at, session.created_at)
