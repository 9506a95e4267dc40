"""The interface of transcription: it takes the bytes of a recording and returns its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from memoryproject.foundation.integrations.retry import do_nothing

# The maximum size that the transcription endpoint accepts.
MAX_BYTES = 20 * 1024 * 1024


class TranscriptionError(Exception):
    """No transcript could be made.

    ``permanent``: a retry can't help. ``is_outside``: the recording isn't to blame.
    """

    def __init__(self, message: str, *, permanent: bool = False, is_outside: bool = False) -> None:
        super().__init__(message)
        self.is_outside = is_outside
        self.permanent = permanent


@dataclass(frozen=True)
class Transcript:
    """The spoken text; empty if nothing was heard. ``model`` is the model that heard it."""

    text: str
    model: str


class Transcriber(Protocol):
    """Transcribes recordings."""

    def transcribe(
        self,
        audio: bytes,
        *,
        mime_type: str,
        before_attempt: Callable[[], None] = do_nothing,
    ) -> Transcript:
        """Return the transcript of the recording.

        ``mime_type`` is the provider's value (``audio/ogg; codecs=opus``). ``before_attempt`` is
        called before each attempt, and may raise to stop. Raises TranscriptionError after the
        retries.
        """
        ...
