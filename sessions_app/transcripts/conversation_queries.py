"""Read a stored conversation in the order of transcripts: by turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import BinaryField, F, Func, IntegerField, QuerySet, TextField, Value
from django.db.models.expressions import Combinable

from sessions_app.models import Chat, ChatSession, Message, TranscriptBatch, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.transcript_files.facade import (
    NO_NUMBER,
    UNANSWERED,
    WHITE_SPACE,
    Exchange,
    LeftOut,
    Row,
    Signs,
    exchanges,
)

ROWS_AT_ONCE = 500
SIGN_BYTES = 32


@dataclass(frozen=True)
class Conversation:
    """A chat with all its sessions, or a single session if one is given."""

    chat: Chat
    session: ChatSession | None = None

    @property
    def messages(self) -> QuerySet[Message]:
        if self.session is not None:
            return Message.objects.filter(session=self.session)
        return Message.objects.filter(chat=self.chat)

    @property
    def batches(self) -> QuerySet[TranscriptBatch]:
        if self.session is not None:
            return TranscriptBatch.objects.filter(session=self.session)
        return TranscriptBatch.objects.filter(chat=self.chat)


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
        session_id = row.session_id
        if self.places and self.places[-1][0] == session_id:
            # One object for all messages of a session.
            session_id = self.places[-1][0]
        self.places.append((session_id, row.order_num))


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


def batches_by_number(
    *, conversation: Conversation, first: int, last: int
) -> dict[int, TranscriptBatch]:
    """Return the last saved batch of each number."""
    rows = conversation.batches.filter(number__range=(first, last)).order_by("id")
    return {batch.number: batch for batch in rows}


def last_batch(*, conversation: Conversation) -> TranscriptBatch | None:
    """Return the last saved batch of a folder. Texts that came by API have no number."""
    return conversation.batches.exclude(number=NO_NUMBER).order_by("-id").first()


def last_batch_number(*, conversation: Conversation) -> int:
    """Return the number of the last saved batch; 0 if there is none."""
    last = last_batch(conversation=conversation)
    return last.number if last else 0


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
        yield _row(*row[:6])
        answer = row[6:]
        if answer[0] is not None and answer[1] == row[1]:
            yield _row(*answer)


def _row(
    message_id: UUID, session_id: UUID, order_num: int, role: str, size: int, value: Any
) -> Row[Any]:
    return Row(message_id, session_id, order_num, role, size == 0, value)
