"""Write a stored conversation as batches that a save accepts, or as one text."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import transaction

from memoryproject.foundation.audit.audit_events import COMMAND_LINE, Actor, audit_record
from memoryproject.foundation.process.storage import file_make, folder_make
from memoryproject.foundation.redaction.redact import redact
from sessions_app.backup.archive_writer import name_file
from sessions_app.models import Message
from sessions_app.transcript_files.parse_transcript import (
    ASSISTANT,
    MAX_FILE_SIZE,
    USER,
    FaultError,
    FolderError,
    message_text,
)
from sessions_app.transcript_files.transcript_folder import (
    BatchFolder,
    Progress,
    batch_name,
    no_progress,
)
from sessions_app.transcripts.conversation_queries import (
    REASONS,
    TOO_LARGE,
    Conversation,
    Exchange,
    LeftOut,
    conversation_exchanges,
)

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
    progress: Progress = no_progress,
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
        raise FolderError(f"{path} can't be made: {error.strerror}.") from error
    folder = BatchFolder(path)
    with folder.locked():
        listing = folder.listing()
        if listing.batches or listing.problems:
            raise FolderError(
                f"There are batches in {path} already: nothing is written over. Choose an empty "
                "folder."
            )
        try:
            _write(conversation, path, messages_a_batch, exported, progress)
        except OSError as error:
            raise FaultError(
                f"The batches can't be written to {path}: {error.strerror}. None of them is there."
            ) from error
    export_record(conversation, COMMAND_LINE, exported, files=exported.files)
    return exported


def _write(
    conversation: Conversation, path: Path, size: int, exported: Exported, progress: Progress
) -> None:
    parts = []
    named: list[Path] = []
    _remove([path / name for name in os.listdir(path) if _PART.fullmatch(name)])
    try:
        total = conversation.messages.count()
        with transaction.atomic():
            for number, text in enumerate(_batches(conversation, size, exported), start=1):
                part = path / f".{batch_name(number)}.part"
                parts.append(part)
                file_make(part, text)
                progress(WRITING, min(exported.messages, total), total)
        progress(WRITING, total, total)
        for number in range(len(parts), 0, -1):
            place = path / batch_name(number)
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
        if len(text) > MAX_FILE_SIZE:
            for message in found:
                exported.leave_out(message, TOO_LARGE)
            continue
        if texts and (2 * len(texts) >= size or held + len(text) > MAX_FILE_SIZE):
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
    text = message_text(role=USER, content=question) + message_text(role=ASSISTANT, content=answer)
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
