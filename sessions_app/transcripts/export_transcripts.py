"""Read a stored conversation by turns, and write it as batches or as one text."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from memoryproject.foundation.audit.audit_events import COMMAND_LINE, Actor, audit_record
from memoryproject.foundation.leases import advisory_lock
from memoryproject.foundation.process.storage import file_make, folder_make
from memoryproject.foundation.redaction.redact import redact
from sessions_app.backup.archive_writer import name_file
from sessions_app.conversations.chat_addresses import chat_at_or_new, chat_of_session
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.conversations.message_store import ConversationNotFoundError
from sessions_app.models import Chat, ChatSession, Message, TranscriptBatch, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.transcript_files import parse_transcript, transcript_folder
from sessions_app.transcript_files.continuity import Signs

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
        parse_transcript.BusyError(
            "Another chat_memory saves into the same chat: run it again when that is done."
        ),
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
        if message.role not in (parse_transcript.USER, parse_transcript.ASSISTANT):
            yield LeftOut(message, OTHER_ROLE)
        elif message.role == parse_transcript.USER:
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
    return conversation.batches.exclude(number=transcript_folder.NO_NUMBER).order_by("-id").first()


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


# Write a stored conversation as batches that a save accepts, or as one text.


WRITING = "Writing"
MESSAGES_A_BATCH = 100
_PART = re.compile(r"\.chat_memory_batch_[0-9]+\.txt\.part")


@dataclass
class Exported:
    """The result of an export.

    ``left_out``: each message that is in no exchange, by its place, and the reason.
    """

    whatsapp_chat: str
    redacted: bool = False
    files: int = 0
    messages: int = 0
    left_out: list[dict[str, Any]] = field(default_factory=list)

    def leave_out(self, message: Message, reason: str) -> None:
        self.left_out.append(
            {
                "session_id": str(message.session_id),
                "order_num": message.order_num,
                "message_id": str(message.pk),
                "role": message.role,
                "reason": reason,
                "what": REASONS[reason],
            }
        )


def transcripts_export(
    *,
    conversation: Conversation,
    path: Path,
    messages_a_batch: int = MESSAGES_A_BATCH,
    progress: transcript_folder.Progress = transcript_folder.no_progress,
    redacted: bool = False,
) -> Exported:
    """Write the conversation's exchanges into a folder, from batch 001 on, redacted if asked.

    Messages in no exchange are left out and reported with their place.

    The files get their names when all of them are written, the last one first. An unfinished
    folder thus has a gap, which a save refuses. Raises FolderError if the folder holds batches
    already, BusyError, FaultError (then there are no files), ValueError for an odd number of
    messages.
    """
    if messages_a_batch < 2 or messages_a_batch % 2:
        raise ValueError("messages_a_batch: must be an even number, 2 or more.")
    exported = Exported(conversation.chat.whatsapp_chat, redacted)
    try:
        folder_make(path)
    except OSError as error:
        raise parse_transcript.FolderError(f"{path} can't be made: {error.strerror}.") from error
    folder = transcript_folder.BatchFolder(path)
    with folder.locked():
        listing = folder.listing()
        if listing.batches or listing.problems:
            raise parse_transcript.FolderError(
                f"There are batches in {path} already: nothing is written over. Choose an empty "
                "folder."
            )
        try:
            _write(conversation, path, messages_a_batch, exported, progress)
        except OSError as error:
            raise parse_transcript.FaultError(
                f"The batches can't be written to {path}: {error.strerror}. None of them is there."
            ) from error
    export_record(conversation, COMMAND_LINE, exported, files=exported.files)
    return exported


def _write(
    conversation: Conversation,
    path: Path,
    size: int,
    exported: Exported,
    progress: transcript_folder.Progress,
) -> None:
    parts = []
    named: list[Path] = []
    _remove([path / name for name in os.listdir(path) if _PART.fullmatch(name)])
    try:
        total = conversation.messages.count()
        with transaction.atomic():
            for number, text in enumerate(_batches(conversation, size, exported), start=1):
                part = path / f".{transcript_folder.batch_name(number)}.part"
                parts.append(part)
                file_make(part, text)
                progress(WRITING, min(exported.messages, total), total)
        progress(WRITING, total, total)
        for number in range(len(parts), 0, -1):
            place = path / transcript_folder.batch_name(number)
            name_file(parts[number - 1], place)
            named.append(place)
    except BaseException:
        _remove(named)
        raise
    finally:
        _remove(parts)
    exported.files = len(parts)


def _batches(conversation: Conversation, size: int, exported: Exported) -> Iterator[bytes]:
    """Yield the texts of the batches, in order."""
    texts: list[bytes] = []
    held = 0
    for found in conversation_exchanges(conversation=conversation):
        if isinstance(found, LeftOut):
            exported.leave_out(found.message, found.reason)
            continue
        text = exchange_text(found, redacted=exported.redacted)
        if len(text) > parse_transcript.MAX_FILE_SIZE:
            for message in found:
                exported.leave_out(message, TOO_LARGE)
            continue
        if texts and (2 * len(texts) >= size or held + len(text) > parse_transcript.MAX_FILE_SIZE):
            yield b"".join(texts)
            texts, held = [], 0
        texts.append(text)
        held += len(text)
        exported.messages += 2
    if texts:
        yield b"".join(texts)


def exchange_text(exchange: Exchange, *, redacted: bool) -> bytes:
    contents = [message.content for message in exchange]
    question, answer = map(redact, contents) if redacted else contents
    text = parse_transcript.message_text(
        role=parse_transcript.USER, content=question
    ) + parse_transcript.message_text(role=parse_transcript.ASSISTANT, content=answer)
    return text.encode("utf-8")


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def export_record(
    conversation: Conversation, actor: Actor, exported: Exported, **details: Any
) -> None:
    """Record in the audit log that the conversation was read."""
    if exported.redacted:
        details["redacted"] = True
    session, chat = conversation.session, conversation.chat
    audit_record(
        "transcript.export",
        actor,
        "chat" if session is None else "session",
        chat.pk if session is None else session.pk,
        **details,
        messages=exported.messages,
        left_out=len(exported.left_out),
        chat_id=chat.pk,
    )


# Write a conversation as one text instead of a folder of batches.


def conversation_text(
    *, conversation: Conversation, actor: Actor, redacted: bool = False
) -> tuple[str, Exported]:
    """Return the conversation's exchanges as one text, and record the access in the audit log.

    Messages that can't alternate are left out and reported.
    """
    exported, texts = Exported(conversation.chat.whatsapp_chat, redacted), []
    with transaction.atomic():
        for found in conversation_exchanges(conversation=conversation):
            if isinstance(found, LeftOut):
                exported.leave_out(found.message, found.reason)
            else:
                texts.append(exchange_text(found, redacted=redacted))
        exported.messages = 2 * len(texts)
        export_record(conversation, actor, exported)
    return b"".join(texts).decode("utf-8"), exported
