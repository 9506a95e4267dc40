"""Read the file of a message: a picture, a document or a recording."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction

from memories_app.documents.document_store import IncomingFile, document_file, document_receive
from memories_app.documents.read_document import document_store
from memories_app.models import DocumentState, SourceDocument, Visibility
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.errors.stored_errors import error_text
from memoryproject.foundation.integrations.documents.sniffing import DocumentError
from memoryproject.foundation.integrations.llm.base import Picture
from memoryproject.foundation.integrations.openai_transcriber import (
    MAX_BYTES as MAX_RECORDING,
    Transcriber,
    Transcript,
    TranscriptionError,
)
from memoryproject.foundation.integrations.retry import DELAYS, wait_before_retry
from memoryproject.foundation.integrations.whatsapp.base import MediaError, MediaProvider
from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.conversations import buttons, chat_language, epochs, phrases
from sessions_app.media import fetch, outgoing_types
from sessions_app.models import GODFATHER, ChatSession, MediaFile, MediaState, Message, Role, Turn
from sessions_app.turns.send import recipient_of
from sessions_app.turns.turn_dependencies import Dependencies, FileDependencies, TurnWork

# Fetch the file of a message from the provider that delivered it.


def media_of(turn: Turn) -> Media:
    """Return what the message states of its file; where memory is off, the turn holds it."""
    values = turn.message.media if turn.message else turn.context.get("media") or {}
    return Media(**{key: values[key] for key in values if key in Media.__dataclass_fields__})


@contextmanager
def fetched(work: TurnWork, *, folder: Path, max_bytes: int) -> Iterator[IncomingFile]:
    """Fetch the file of the turn's message and keep it while the ``with`` block lasts.

    Retries after 1, 2 and 4 seconds. Raises MediaError, DocumentError, OSError, LeaseLostError.
    """
    turn = work.turn
    provider = work.dependencies.providers[turn.provider]
    if not isinstance(provider, MediaProvider):
        raise MediaError("the provider hands out no files", code="gone", permanent=True)
    for delay in (*DELAYS, None):
        work.lease.renew()
        # A new one for each attempt: a failed attempt may have written a part.
        with IncomingFile(folder, max_bytes=max_bytes) as file:
            try:
                provider.fetch_media(
                    media=media_of(turn),
                    provider_message_id=turn.provider_message_id,
                    chat=recipient_of(turn),
                    into=file,
                    max_bytes=max_bytes,
                )
            except MediaError as error:
                if error.permanent or delay is None:
                    raise
                logger.warning("A file could not be fetched, trying again: %s", error)
                wait = wait_before_retry(delay, error.retry_after)
            else:
                yield file
                return
        work.dependencies.sleep(wait)


logger = logging.getLogger(__name__)

PICTURE = "image"
# The types that models of OpenAI's kind read.
TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_PICTURES = 3
# WhatsApp's own limit of pictures at the Cloud API.
MAX_PICTURE = 5 * 1024 * 1024


def pictures_of(work: TurnWork) -> list[Picture]:
    """Return the newest pictures that came since the last answer, oldest first.

    A picture that can't be had, is too large or is none is left out. Raises LeaseLostError.
    """
    turn, dependencies = work.turn, work.dependencies
    found: list[Picture] = []
    if turn.context.get("kind") == PICTURE:
        own = _kept(turn.message_id, dependencies) or _fetched(work)
        found += [own] if own else []
    for message in _unanswered(turn):
        if len(found) == MAX_PICTURES:
            break
        picture = _kept(message.pk, dependencies)
        found += [picture] if picture else []
    return found[::-1]


def _unanswered(turn: Turn) -> Iterator[Message]:
    """Yield the earlier messages with pictures since the last answer, newest first."""
    question = turn.message
    if question is None:
        return
    before = Message.objects.filter(session=question.session_id, order_num__lt=question.order_num)
    answered = before.filter(role=Role.ASSISTANT).order_by("-order_num")
    last = answered.values_list("order_num", flat=True).first() or 0
    pictures = before.filter(
        role=Role.USER, kind=PICTURE, order_num__gt=last, revoked_at__isnull=True
    ).defer("terms")
    yield from pictures.order_by("-order_num")[:MAX_PICTURES]


def pictures_of_record(
    prompt: Sequence[Mapping[str, Any]], dependencies: Dependencies
) -> dict[str, Picture]:
    """Return the pictures that a stored prompt names, by the ids of their messages.

    Those are left out that are kept no longer, and all where models are to see none.
    """
    if not dependencies.rules.sees_pictures:
        return {}
    found = {key: _kept(UUID(key), dependencies) for key in set(pictures_named(prompt)) if key}
    return {key: picture for key, picture in found.items() if picture}


def pictures_named(prompt: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of the messages whose pictures a stored prompt has, "" for one without."""
    return [str(key) for entry in prompt for key in entry.get("pictures", ())]


def pictures_gone(prompt: Sequence[Mapping[str, Any]]) -> int:
    """Return how many pictures of a stored prompt aren't among the kept files any more."""
    named = pictures_named(prompt)
    kept = MediaFile.objects.filter(
        message__in=[key for key in named if key], state=MediaState.STORED
    )
    return len(named) - kept.count() if named else 0


def _kept(message_id: UUID | None, dependencies: Dependencies) -> Picture | None:
    """Return the picture of a message from the kept files."""
    if message_id is None or dependencies.media is None:
        return None
    row = MediaFile.objects.filter(message=message_id, state=MediaState.STORED).first()
    if row is None or row.size > MAX_PICTURE or row.content_type not in TYPES:
        return None
    try:
        with dependencies.media.open(fetch.media_name(row.pk)) as file:
            content = file.read()
    except OSError as error:
        logger.warning("The picture of message %s can't be read: %s", message_id, error)
        return None
    return Picture(row.content_type, content, str(message_id))


def _fetched(work: TurnWork) -> Picture | None:
    """Fetch the picture of the turn's own message: the worker that keeps files may come later."""
    turn, files = work.turn, work.dependencies.files
    if files is None:
        return None
    try:
        with fetched(work, folder=files.folder, max_bytes=MAX_PICTURE) as file:
            return _picture(turn, file)
    except (MediaError, DocumentError, OSError) as error:
        logger.warning("The model doesn't see the picture of turn %s: %s", turn.turn_id, error)
        return None


def _picture(turn: Turn, file: IncomingFile) -> Picture | None:
    content = file.read()
    content_type = outgoing_types.type_of(content[: outgoing_types.HEAD], kind=PICTURE)
    if content_type not in TYPES:
        return None
    return Picture(content_type, content, str(turn.message.pk) if turn.message else "")


# Read the document of a message, and report the result.


MEGABYTE = 1024 * 1024
MAX_NAME_LENGTH = 100


def document_note(work: TurnWork) -> str:
    """Store the document of the turn's message as memories; return the note for the answer.

    A second run for the same turn has no second effect.

    Raises LeaseLostError, DocumentBusyError and DatabaseError.
    """
    turn, dependencies = work.turn, work.dependencies
    files = dependencies.files
    if files is None:
        return phrases.received_text("document", turn.chat.language)
    if turn.message is None or not dependencies.rules.longterm_enabled:
        return _say("document_not_kept", turn, files)
    try:
        document, known = _document_of(work, files)
        if not known:
            document = document_store(
                document_id=document.document_id,
                folder=files.folder,
                extractor=files.extractor,
                embedder=dependencies.embedder,
                actor=_person(turn),
                before_step=work.lease.renew,
            )
    except MediaError as error:
        logger.warning("The document of turn %s could not be fetched: %s", turn.turn_id, error)
        too_large = error.code == "too_large"
        return _say("document_too_large" if too_large else "document_unfetched", turn, files)
    except DocumentError as error:
        logger.warning("The document of turn %s could not be read: %s", turn.turn_id, error)
        return _say(phrases.document_failure(error.code), turn, files)
    if document.state == DocumentState.FAILED:
        return _say(phrases.document_failure(document.error_code), turn, files)
    return _report(document, turn, files, known=known)


def _document_of(work: TurnWork, files: FileDependencies) -> tuple[SourceDocument, bool]:
    """Return the document, and whether it was known before this message.

    A document that a killed worker left is found again. Its file is fetched again only where it is
    gone.
    """
    turn = work.turn
    earlier = SourceDocument.objects.filter(source_message_id=turn.message_id).first()
    if earlier is not None:
        waits = document_file(files.folder, earlier.document_id).exists()
        if waits or earlier.state in (DocumentState.READY, DocumentState.FAILED):
            return earlier, False
    owner = turn.user_role == GODFATHER
    with (
        fetched(work, folder=files.folder, max_bytes=files.limits.size) as file,
        transaction.atomic(),
    ):
        epochs.chats_keep([turn.chat_id])
        received = document_receive(
            file=file,
            name=_name(turn),
            folder=files.folder,
            visibility=str(Visibility.OWNER if owner else Visibility.CHAT),
            chat_id=turn.chat_id,
            source_message_id=turn.message_id,
            actor=_person(turn),
        )
    return received.document, received.duplicate


def _report(document: SourceDocument, turn: Turn, files: FileDependencies, *, known: bool) -> str:
    language = turn.chat.language
    sizes = [phrases.counted("passage", document.memories.count(), language)]
    if document.pages is not None:
        sizes.insert(0, phrases.counted("page", document.pages, language))
    name = "document_known" if known else "document_read"
    return _say(name, turn, files, size=", ".join(sizes))


def _say(name: str, turn: Turn, files: FileDependencies, **values: str) -> str:
    return phrases.text_for(
        name,
        turn.chat.language,
        file=_name(turn),
        limit=str(files.limits.size // MEGABYTE),
        pages=str(files.limits.pages),
        **values,
    )


def sent_document_name(filename: str, language: str) -> str:
    """Return the name that a sender gave a document, or a word for it in the chat's language.

    It is on one line, since it stands in a sentence.
    """
    name = " ".join("".join(char for char in filename if char.isprintable()).split())
    if name:
        return cut_at_word(name, MAX_NAME_LENGTH)
    return phrases.text_for("document_unnamed", language)


def _name(turn: Turn) -> str:
    return sent_document_name(media_of(turn).filename, turn.chat.language)


def _person(turn: Turn) -> Actor:
    return Actor("person", chat_id=turn.chat_id)


# Transcribe a recording; the transcript then is the message's text.


RECORDINGS = ("voice", "audio")


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


def recording_heard(work: TurnWork) -> str:
    """Return the words of the turn's recording, stored as its message's text.

    The recording itself is not kept. Raises NotHeardError, LeaseLostError, DatabaseError.
    """
    files = work.dependencies.files
    if files is None or files.transcriber is None:
        raise NotHeardError("received_audio")
    transcript = _transcript(work, files.folder, files.transcriber)
    text = transcript.text.strip()
    if not text:
        raise NotHeardError("audio_silent")
    _transcript_store(work, text, transcript.model)
    return text


def _transcript(work: TurnWork, folder: Path, transcriber: Transcriber) -> Transcript:
    turn = work.turn
    try:
        with fetched(work, folder=folder, max_bytes=MAX_RECORDING) as file:
            return transcriber.transcribe(
                file.read(), mime_type=media_of(turn).mime_type, before_attempt=work.lease.renew
            )
    except (MediaError, DocumentError, TranscriptionError) as error:
        logger.warning("The recording of turn %s was not heard: %s", turn.turn_id, error)
        # The provider still has the file.
        is_away = isinstance(error, MediaError) and not error.permanent
        is_outside = is_away or (isinstance(error, TranscriptionError) and error.is_outside)
        raise NotHeardError("audio_failed", error_text(error), is_outside=is_outside) from error


def _transcript_store(work: TurnWork, text: str, model: str) -> None:
    turn = work.turn
    with transaction.atomic():
        if turn.message_id is None:
            held = work.lease.lock()
            held.unstored_text = text
            held.save(update_fields=["unstored_text"])
        else:
            # Session, message, turn: the order in which all code locks.
            ChatSession.objects.select_for_update(no_key=True).get(pk=turn.session_id)
            message = Message.objects.select_for_update(no_key=True).get(pk=turn.message_id)
            work.lease.lock()
            work.dependencies.chat_memory.retext(message=message, content=text)
            message.metadata = {**message.metadata, "transcript": {"model": model}}
            turn.message = message
            if command := buttons.command_in_turn(turn):
                message.metadata["command"] = command.name
            message.save(update_fields=["metadata"])
    # Not in the transaction: chats are locked before sessions.
    chat_language.language_learn(chat=turn.chat, text=text)
