"""A Transcriber with scripted results, for tests and for trying things out."""

from __future__ import annotations

from collections.abc import Callable

from memoryproject.foundation.integrations.openai_transcriber import Transcript, TranscriptionError
from memoryproject.foundation.integrations.retry import do_nothing


class ScriptedTranscriber:
    """Returns the next of the given texts each time, and raises those that are errors.

    After the last one, it returns the recording itself, read as UTF-8. ``heard`` keeps recordings.
    """

    def __init__(self, *script: str | TranscriptionError) -> None:
        self._script = list(script)
        self.heard: list[bytes] = []

    def transcribe(
        self, audio: bytes, *, mime_type: str, before_attempt: Callable[[], None] = do_nothing
    ) -> Transcript:
        """See Transcriber.transcribe; nothing is retried."""
        before_attempt()
        self.heard.append(audio)
        outcome = self._script.pop(0) if self._script else audio.decode(errors="replace")
        if isinstance(outcome, TranscriptionError):
            raise outcome
        return Transcript(text=outcome, model="scripted")
