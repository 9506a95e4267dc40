"""Fetch the file of a message from the provider that delivered it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memories_app.documents.facade import IncomingFile
from memoryproject.foundation.integrations.retry import DELAYS, wait_before_retry
from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.integrations.whatsapp.media import MediaError, MediaProvider
from sessions_app.models import Turn
from sessions_app.turns.send import recipient_of
from sessions_app.turns.turn_claims import TurnLease
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)


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
