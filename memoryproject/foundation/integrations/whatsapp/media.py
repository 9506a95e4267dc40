"""The interface for fetching a provider's files: bytes into a sink, or a MediaError."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from memoryproject.foundation.integrations.retry import AttemptFailed
from memoryproject.foundation.integrations.whatsapp.base import Recipient
from memoryproject.foundation.integrations.whatsapp.events import Media


class MediaError(AttemptFailed):
    """A file could not be fetched.

    ``code``: "too_large"; "gone" (the provider no longer has it, or not for us); "refused" (its
    address isn't one that we fetch from); "unavailable" (the provider or the network failed, or the
    content isn't what was announced).
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "unavailable",
        permanent: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, permanent=permanent, retry_after=retry_after)
        self.code = code


class MediaSink(Protocol):
    """Receives the file's bytes in order."""

    def write(self, block: bytes, /) -> object: ...


@runtime_checkable
class MediaProvider(Protocol):
    """A provider that supplies the files of messages."""

    def fetch_media(
        self,
        *,
        media: Media,
        provider_message_id: str,
        chat: Recipient,
        into: MediaSink,
        max_bytes: int,
    ) -> None:
        """Write the file of a message into the sink in one attempt. Raises MediaError.

        Exceptions of the sink propagate. After an error the sink may hold a part of the file.
        """
        ...
