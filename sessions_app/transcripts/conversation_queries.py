"""Find the conversation of a transcript, and read it in the order of transcripts: by turns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import BinaryField, F, Func, IntegerField, QuerySet, TextField, Value
from django.db.models.expressions import Combinable

from memoryproject.foundation.leases import advisory_lock
from sessions_app.conversations.chat_addresses import chat_at_or_new, chat_of_session
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.conversations.message_store import ConversationNotFoundError
from sessions_app.models import Chat, ChatSession, Message, TranscriptBatch, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.transcript_files.continuity import Signs
from sessions_app.transcript_files.parse_transcript import ASSISTANT, USER, BusyError
from sessions_app.transcript_files.transcript_folder import NO_NUMBER, WHITE_SPACE

ROWS_AT_ONCE = 500
SIGN_BYTES = 32


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

T = TypeVar("T")

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
class Row(Generic[T]):
    """A stored message.

    ``size``: of its text without surrounding white space, in characters. ``value`` is chosen by the
    caller: its content or a sign.
    """

    message_id: UUID
    session_id: UUID
    order_num: int
    role: str
    size: int
    value: T

    @property
    def blank(self) -> bool:
        return self.size == 0


@dataclass(frozen=True)
class Exchange(Generic[T]):
    """A question of the user and the answer of the assistant."""

    question: Row[T]
    answer: Row[T]


@dataclass(frozen=True)
class LeftOut(Generic[T]):
    """A message that is in no exchange; ``reason`` is one of ``REASONS``."""

    row: Row[T]
    reason: str


def exchanges(rows: Iterable[Row[T]]) -> Iterator[Exchange[T] | LeftOut[T]]:
    """Yield each row of a conversation, in order: in an exchange, or left out."""
    question: Row[T] | None = None
    for row in rows:
        if row.role not in (USER, ASSISTANT):
            yield LeftOut(row, OTHER_ROLE)
        elif row.role == USER:
            if question is not None:
                yield LeftOut(question, UNANSWERED)
            question = None if row.blank else row
            if row.blank:
                yield LeftOut(row, BLANK)
        elif row.blank:
            yield LeftOut(row, BLANK)
        elif question is None:
            yield LeftOut(row, NO_QUESTION)
        else:
            yield Exchange(question, row)
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

    def add(self, row: Row[bytes]) -> None:
        role, found = row.role[:1].encode(), bytes(row.value)
        self.signs.add(role + found[:SIGN_BYTES], role + found[SIGN_BYTES:])
        self.places.append((row.session_id, row.order_num))


def conversation_signs(*, conversation: Conversation) -> StoredSigns:
    """Return the signs of a conversation; no text leaves the database.

    See ``sign_of`` and ``loose_sign_of`` for the definition of a sign.
    """
    found = StoredSigns()
    last: Exchange[bytes] | LeftOut[bytes] | None = None
    for last in exchanges(_rows(conversation.messages, _digests)):
        if isinstance(last, Exchange):
            found.add(last.question)
            found.add(last.answer)
    if isinstance(last, LeftOut) and last.reason == UNANSWERED:
        found.add(last.row)
    return found


def conversation_exchanges(*, conversation: Conversation) -> Iterator[Exchange[str] | LeftOut[str]]:
    """Return the exchanges with their texts, and the messages in none.

    Call it in a transaction.
    """
    return exchanges(_rows(conversation.messages, F))


def is_answering(*, chat: Chat) -> bool:
    """Return whether an answer is being made or sent in a chat."""
    states = (*WAITING_STATES, TurnState.SENDING)
    return Turn.objects.filter(chat=chat, session__isnull=False, state__in=states).exists()


def last_batch(*, conversation: Conversation) -> TranscriptBatch | None:
    """Return the last saved batch of a folder. Texts that came by API have no number."""
    return conversation.batches.exclude(number=NO_NUMBER).order_by("-id").first()


def _digests(name: str) -> Combinable:
    """Return the hash of a text, and then the hash of its loose form."""
    form = Func(F(name), function="normalize", output_field=TextField())
    loose = Func(
        form, Value(WHITE_SPACE), Value(""), function="translate", output_field=TextField()
    )
    # ``||`` of bytea; Concat would join texts.
    return Func(
        _digest(F(name)),
        _digest(loose),
        template="(%(expressions)s)",
        arg_joiner=" || ",
        output_field=BinaryField(),
    )


def _digest(text: Combinable) -> Combinable:
    data = Func(text, Value("UTF8"), function="convert_to", output_field=BinaryField())
    return Func(data, function="sha256", output_field=BinaryField())


def _size(name: str) -> Combinable:
    """Return the length of a text without surrounding white space, in characters."""
    trimmed = Func(F(name), Value(WHITE_SPACE), function="btrim", output_field=TextField())
    return Func(trimmed, function="length", output_field=IntegerField())


def _rows(messages: QuerySet[Message], value: Callable[[str], Combinable]) -> Iterator[Row[Any]]:
    """Return the messages by turns.

    Session after session, by order_num; each answer stands right after its message if both are
    in the same session.
    """
    questions = messages.exclude(answers__session=F("session")).annotate(
        size=_size("content"),
        value=value("content"),
        answer_size=_size("answer__content"),
        answer_value=value("answer__content"),
    )
    questions = questions.order_by("session__created_at", "session_id", "order_num")
    columns = ("pk", "session_id", "order_num", "role", "size", "value")
    answers = tuple(f"answer__{name}" for name in columns[:4])
    rows = questions.values_list(*columns, *answers, "answer_size", "answer_value")
    for row in rows.iterator(ROWS_AT_ONCE):
        yield Row(*row[:6])
        answer = row[6:]
        if answer[0] is not None and answer[1] == row[1]:
            yield Row(*answer)
