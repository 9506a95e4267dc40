"""What listening to a recording means to us: bytes in, words out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from memoryproject.foundation.integrations.retry import nothing

# What the endpoint that we speak to takes at most.
MAX_BYTES = 20 * 1024 * 1024


class TranscriptionError(Exception):
    """No words could be had. ``permanent``: trying again can't help."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


@dataclass(frozen=True)
class Transcript:
    """What was said; empty where nothing was heard. ``model`` is who heard it."""

    text: str
    model: str


class Transcriber(Protocol):
    """Writes down what is said in a recording."""

    def transcribe(
        self,
        audio: bytes,
        *,
        mime_type: str,
        before_attempt: Callable[[], None] = nothing,
    ) -> Transcript:
        """``mime_type`` as the provider tells it (``audio/ogg; codecs=opus``).
        ``before_attempt`` is called before each try, and may raise to stop. Raises
        TranscriptionError after the retries."""
        ...
