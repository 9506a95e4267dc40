"""Transcribe a recording; the transcript then is the message's text."""

from __future__ import annotations

import logging
from pathlib import Path

from django.db import transaction

from memoryproject.foundation.errors.stored_errors import error_text
from memoryproject.foundation.integrations.documents.sniffing import DocumentError
from memoryproject.foundation.integrations.openai_transcriber import (
    MAX_BYTES,
    Transcriber,
    Transcript,
    TranscriptionError,
)
from memoryproject.foundation.integrations.whatsapp.base import MediaError
from sessions_app.conversations.facade import language_of, parse_command
from sessions_app.models import Chat, ChatSession, Message, Turn
from sessions_app.turns.pictures import fetched, media_of
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)

KINDS = ("voice", "audio")


class NotHeardError(Exception):
    """There are no words to answer.

    ``text_name`` names the text of the reply. ``why``: the error, where something failed;
    ``is_outside``: the recording isn't to blame for it.
    """

    def __init__(self, text_name: str, why: str = "", *, is_outside: bool = False) -> None:
        super().__init__(text_name)
        self.text_name = text_name
        self.is_outside = is_outside
        self.why = why


def recording_heard(*, turn: Turn, lease: TurnLease, dependencies: Dependencies) -> str:
    """Return the words of the turn's recording, stored as its message's text.

    The recording itself is not kept. Raises NotHeardError, LeaseLostError, DatabaseError.
    """
    files = dependencies.files
    if files is None or files.transcriber is None:
        raise NotHeardError("received_audio")
    transcript = _transcript(turn, lease, dependencies, files.folder, files.transcriber)
    text = transcript.text.strip()
    if not text:
        raise NotHeardError("audio_silent")
    _store(turn, lease, dependencies, text, transcript.model)
    return text


def _transcript(
    turn: Turn, lease: TurnLease, dependencies: Dependencies, folder: Path, transcriber: Transcriber
) -> Transcript:
    try:
        with fetched(
            turn=turn, lease=lease, dependencies=dependencies, folder=folder, max_bytes=MAX_BYTES
        ) as file:
            return transcriber.transcribe(
                file.read(), mime_type=media_of(turn).mime_type, before_attempt=lease.renew
            )
    except (MediaError, DocumentError, TranscriptionError) as error:
        logger.warning("The recording of turn %s was not heard: %s", turn.turn_id, error)
        # The provider still has the file.
        is_away = isinstance(error, MediaError) and not error.permanent
        is_outside = is_away or (isinstance(error, TranscriptionError) and error.is_outside)
        raise NotHeardError("audio_failed", error_text(error), is_outside=is_outside) from error


def _store(turn: Turn, lease: TurnLease, dependencies: Dependencies, text: str, model: str) -> None:
    with transaction.atomic():
        if turn.message_id is None:
            held = lease.lock()
            held.unstored_text = text
            held.save(update_fields=["unstored_text"])
        else:
            # Session, message, turn: the order in which all code locks.
            ChatSession.objects.select_for_update(no_key=True).get(pk=turn.session_id)
            message = Message.objects.select_for_update(no_key=True).get(pk=turn.message_id)
            lease.lock()
            dependencies.chat_memory.retext(message=message, content=text)
            message.metadata = {**message.metadata, "transcript": {"model": model}}
            if command := parse_command(text, in_group=turn.chat.is_group):
                message.metadata["command"] = command.name
            message.save(update_fields=["metadata"])
            turn.message = message
    # Not in the transaction: chats are locked before sessions.
    language = language_of(text, turn.chat.language)
    if language and language != turn.chat.language:
        Chat.objects.filter(pk=turn.chat_id).update(language=language)
        turn.chat.language = language
