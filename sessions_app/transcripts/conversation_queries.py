"""Find the conversation of a transcript, and read it in the order of transcripts: by turns."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from django.db.models import F, QuerySet

from memoryproject.foundation.leases import advisory_lock
from sessions_app.conversations.chat_addresses import chat_at_or_new, chat_of_session
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.conversations.message_store import ConversationNotFoundError
from sessions_app.models import Chat, ChatSession, Message, TranscriptBatch, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.transcript_files.continuity import Signs
from sessions_app.transcript_files.parse_transcript import ASSISTANT, USER, BusyError
from sessions_app.transcript_files.transcript_folder import NO_NUMBER

ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Conversation:
    """A chat with all its sessions, or a single session if one is given."""

    chat: Chat
    session: ChatSession | None = None

    @property
    def messages(self) -> QuerySet[Message]:
        return Message.objects.filter(**self._where)

    @property
    def batches(self) -> QuerySet[TranscriptBatch]:
        return TranscriptBatch.objects.filter(**self._where)

    @property
    def _where(self) -> dict[str, Any]:
        return {"session": self.session} if self.session else {"chat": self.chat}


# The chat of batches for which no chat was given.
DEFAULT_CHAT = "transcripts@c.us"


@dataclass(frozen=True)
class Target:
    """A session by its id, or else a chat by its address, which may be new."""

    whatsapp_chat: str = DEFAULT_CHAT
    session_id: UUID | None = None

    def find(self) -> Conversation | None:
        """Return the stored conversation; None if the chat is new.

        Raises ConversationNotFoundError for an unknown session.
        """
        if self.session_id is None:
            chat = chat_at(self.whatsapp_chat)
            return None if chat is None else Conversation(chat)
        session = ChatSession.objects.select_related("chat").filter(pk=self.session_id).first()
        if session is None:
            raise ConversationNotFoundError(self.session_id)
        return Conversation(session.chat, session)

    def lock(self, now: datetime) -> Conversation:
        """Return the conversation with the chat's row locked; create a new chat.

        Call it in a transaction.
        """
        if self.session_id is not None:
            owner = chat_of_session(self.session_id)
            if owner is None:
                raise ConversationNotFoundError(self.session_id)
            sessions = ChatSession.objects.select_for_update(no_key=True)
            return Conversation(owner, sessions.get(pk=self.session_id))
        found = chat_at_or_new(self.whatsapp_chat, at=now)
        return Conversation(Chat.objects.select_for_update(no_key=True).get(pk=found.pk))


def alone_in(target: Target) -> AbstractContextManager[None]:
    """Return the lock on saves into the target's chat. Raises BusyError."""
    found = target.find()
    name = str(found.chat.pk) if found else target.whatsapp_chat
    digest = hashlib.sha256(f"transcripts\0{name}".encode()).digest()
    return advisory_lock(
        int.from_bytes(digest[:8], "big", signed=True),
        BusyError("Another chat_memory saves into the same chat: run it again when that is done."),
    )


# A message and its answer are an exchange.

Exchange: TypeAlias = tuple[Message, Message]

UNANSWERED = "unanswered"
NO_QUESTION = "no_question"
BLANK = "blank"
OTHER_ROLE = "other_role"
TOO_LARGE = "too_large"

REASONS = {
    UNANSWERED: "a user's message without an answer",
    NO_QUESTION: "an answer without a user's message before it",
    BLANK: "a message without text",
    OTHER_ROLE: "neither a user's nor an assistant's message",
    TOO_LARGE: "an exchange that is larger than a batch may be",
}


@dataclass(frozen=True)
class LeftOut:
    """A message that is in no exchange; ``reason`` is one of ``REASONS``."""

    message: Message
    reason: str


def exchanges(messages: Iterable[Message]) -> Iterator[Exchange | LeftOut]:
    """Yield each message of a conversation, in order: in an exchange, or left out."""
    question: Message | None = None
    for message in messages:
        is_blank = not message.content.strip()
        if message.role not in (USER, ASSISTANT):
            yield LeftOut(message, OTHER_ROLE)
        elif message.role == USER:
            if question is not None:
                yield LeftOut(question, UNANSWERED)
            question = None if is_blank else message
            if is_blank:
                yield LeftOut(message, BLANK)
        elif is_blank:
            yield LeftOut(message, BLANK)
        elif question is None:
            yield LeftOut(message, NO_QUESTION)
        else:
            yield question, message
            question = None
    if question is not None:
        yield LeftOut(question, UNANSWERED)


@dataclass
class StoredSigns:
    """The signs of a conversation's messages, to compare it with files.

    One for each message in an exchange, and for a last one that waits for its answer.
    ``places`` holds the position of each: its session and order_num.
    """

    signs: Signs = field(default_factory=Signs)
    places: list[tuple[UUID, int]] = field(default_factory=list)

    def add(self, *messages: Message) -> None:
        for message in messages:
            self.signs.add_message(message.role, message.content)
            self.places.append((message.session_id, message.order_num))


def conversation_signs(*, conversation: Conversation) -> StoredSigns:
    """Return the signs of a conversation. See ``Signs.add_message`` for what a sign is."""
    found = StoredSigns()
    last: Exchange | LeftOut | None = None
    for last in conversation_exchanges(conversation=conversation):
        if isinstance(last, tuple):
            found.add(*last)
    if isinstance(last, LeftOut) and last.reason == UNANSWERED:
        found.add(last.message)
    return found


def conversation_exchanges(*, conversation: Conversation) -> Iterator[Exchange | LeftOut]:
    """Return the exchanges, and the messages in none. Call it in a transaction."""
    return exchanges(_by_turns(conversation.messages))


def is_answering(*, chat: Chat) -> bool:
    """Return whether an answer is being made or sent in a chat."""
    states = (*WAITING_STATES, TurnState.SENDING)
    return Turn.objects.filter(chat=chat, session__isnull=False, state__in=states).exists()


def last_batch(*, conversation: Conversation) -> TranscriptBatch | None:
    """Return the last saved batch of a folder. Texts that came by API have no number."""
    return conversation.batches.exclude(number=NO_NUMBER).order_by("-id").first()


def _by_turns(messages: QuerySet[Message]) -> Iterator[Message]:
    """Return the messages by turns.

    Session after session, by order_num; each answer stands right after its message if both are
    in the same session.
    """
    columns = ("session_id", "order_num", "role", "content")
    questions = messages.exclude(answers__session=F("session")).select_related("answer")
    questions = questions.only(*columns, *(f"answer__{name}" for name in columns))
    in_order = questions.order_by("session__created_at", "session_id", "order_num")
    for message in in_order.iterator(ROWS_AT_ONCE):
        yield message
        answer: Message | None = getattr(message, "answer", None)
        if answer is not None and answer.session_id == message.session_id:
            yield answer
