"""Collect the pictures that a model sees with the message it answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from memories_app.documents.document_store import IncomingFile
from memoryproject.foundation.integrations.documents.sniffing import DocumentError
from memoryproject.foundation.integrations.llm.base import Picture
from memoryproject.foundation.integrations.retry import DELAYS, wait_before_retry
from memoryproject.foundation.integrations.whatsapp.base import MediaError, MediaProvider
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.media.facade import HEAD, media_name, type_of
from sessions_app.models import MediaFile, Message, Turn
from sessions_app.models.messages import Role
from sessions_app.models.stored_media import MediaState
from sessions_app.turns.send import recipient_of
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies

# Fetch the file of a message from the provider that delivered it.


def media_of(turn: Turn) -> Media:
    """Return what the message states of its file; where memory is off, the turn holds it."""
    values = turn.message.media if turn.message else turn.context.get("media") or {}
    return Media(**{key: values[key] for key in values if key in Media.__dataclass_fields__})


@contextmanager
def fetched(
    *, turn: Turn, lease: TurnLease, dependencies: Dependencies, folder: Path, max_bytes: int
) -> Iterator[IncomingFile]:
    """Fetch the file of the turn's message and keep it while the ``with`` block lasts.

    Retries after 1, 2 and 4 seconds. Raises MediaError, DocumentError, OSError, LeaseLostError.
    """
    provider = dependencies.providers[turn.provider]
    if not isinstance(provider, MediaProvider):
        raise MediaError("the provider hands out no files", code="gone", permanent=True)
    for delay in (*DELAYS, None):
        lease.renew()
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
        dependencies.sleep(wait)


logger = logging.getLogger(__name__)

KIND = "image"
# The types that models of OpenAI's kind read.
TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
MAX_PICTURES = 3
# WhatsApp's own limit of pictures at the Cloud API.
MAX_BYTES = 5 * 1024 * 1024


def pictures_of(*, turn: Turn, lease: TurnLease, dependencies: Dependencies) -> list[Picture]:
    """Return the newest pictures that came since the last answer, oldest first.

    A picture that can't be had, is too large or is none is left out. Raises LeaseLostError.
    """
    found: list[Picture] = []
    if turn.context.get("kind") == KIND:
        own = _kept(turn.message_id, dependencies) or _fetched(turn, lease, dependencies)
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
        role=Role.USER, kind=KIND, order_num__gt=last, revoked_at__isnull=True
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
    if row is None or row.size > MAX_BYTES or row.content_type not in TYPES:
        return None
    try:
        with dependencies.media.open(media_name(row.pk)) as file:
            content = file.read()
    except OSError as error:
        logger.warning("The picture of message %s can't be read: %s", message_id, error)
        return None
    return Picture(row.content_type, content, str(message_id))


def _fetched(turn: Turn, lease: TurnLease, dependencies: Dependencies) -> Picture | None:
    """Fetch the picture of the turn's own message: the worker that keeps files may come later."""
    if dependencies.files is None:
        return None
    try:
        with fetched(
            turn=turn,
            lease=lease,
            dependencies=dependencies,
            folder=dependencies.files.folder,
            max_bytes=MAX_BYTES,
        ) as file:
            return _picture(turn, file)
    except (MediaError, DocumentError, OSError) as error:
        logger.warning("The model doesn't see the picture of turn %s: %s", turn.turn_id, error)
        return None


def _picture(turn: Turn, file: IncomingFile) -> Picture | None:
    content = file.read()
    content_type = type_of(content[:HEAD], kind=KIND)
    if content_type not in TYPES:
        return None
    return Picture(content_type, content, str(turn.message.pk) if turn.message else "")
