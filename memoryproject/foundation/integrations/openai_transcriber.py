"""Transcribe through OpenAI's transcription endpoint, or a compatible server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memoryproject.foundation.integrations import retry
from memoryproject.foundation.text.characters import storable

if TYPE_CHECKING:
    import openai

# The endpoint detects the format by the file's name.
_ENDINGS: dict[str, str] = json.loads(
    Path(__file__).with_name("recording_endings.json").read_text(encoding="utf-8")
)


class OpenAITranscriber:
    """A Transcriber with ``POST /audio/transcriptions``. Holds sockets: close() frees them."""

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        model: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        **connection: Any,
    ) -> None:
        """``connection``: what OpenAIConnection takes besides."""
        from memoryproject.foundation.integrations.llm.openai_api import OpenAIConnection  # noqa: PLC0415 slow

        self.model = model
        self._sleep = sleep
        self._connection = OpenAIConnection(api_key, base_url, **connection)

    def close(self) -> None:
        self._connection.close()

    def transcribe(
        self, audio: bytes, *, mime_type: str, before_attempt: Callable[[], None] = retry.do_nothing
    ) -> Transcript:
        """See Transcriber.transcribe."""
        bare = mime_type.partition(";")[0].strip().lower()
        named = (f"recording.{_ENDINGS.get(bare, 'ogg')}", audio, bare or "audio/ogg")
        try:
            text, _ = retry.call_with_retries(
                lambda: self._ask(named), sleep=self._sleep, before_attempt=before_attempt
            )
        except retry.AttemptFailed as failure:
            raise TranscriptionError.of(failure) from None
        return Transcript(text=text, model=self.model)

    def _ask(self, named: tuple[str, bytes, str]) -> str:
        from memoryproject.foundation.integrations.llm.openai_api import unreadable_answer  # noqa: PLC0415 slow

        def request(client: openai.OpenAI) -> str:
            answer = client.audio.transcriptions.create(
                model=self.model, file=named, response_format="json"
            )
            if not isinstance(answer.text, str):
                raise unreadable_answer()
            return storable(answer.text)

        return self._connection.call(request).strip()


# The interface of transcription: it takes the bytes of a recording and returns its words.


# The maximum size that the transcription endpoint accepts.
MAX_BYTES = 20 * 1024 * 1024


class TranscriptionError(retry.CallError):
    """No transcript could be made."""


@dataclass(frozen=True)
class Transcript:
    """The spoken text; empty if nothing was heard. ``model`` is the model that heard it."""

    text: str
    model: str


class Transcriber(Protocol):
    """Transcribes recordings."""

    def transcribe(
        self, audio: bytes, *, mime_type: str, before_attempt: Callable[[], None] = retry.do_nothing
    ) -> Transcript:
        """Return the transcript of the recording.

        ``mime_type`` is the provider's value (``audio/ogg; codecs=opus``). ``before_attempt`` is
        called before each attempt, and may raise to stop. Raises TranscriptionError after the
        retries.
        """
