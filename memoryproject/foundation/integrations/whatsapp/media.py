"""What fetching a file from a provider means to us: bytes into a sink, or a MediaError."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from memoryproject.foundation.integrations.retry import AttemptFailed
from memoryproject.foundation.integrations.whatsapp.base import Recipient
from memoryproject.foundation.integrations.whatsapp.events import Media


class MediaError(AttemptFailed):
    """A file could not be fetched. ``code``: "too_large"; "gone" (the provider has it no
    more, or not for us); "refused" (its address isn't one that we fetch from); "unavailable"
    (the provider, the network, or what came isn't what was announced)."""

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
    """Takes the file's bytes in order."""

    def write(self, block: bytes, /) -> object: ...


@runtime_checkable
class MediaProvider(Protocol):
    """A provider that hands out the files of messages."""

    def fetch_media(
        self,
        *,
        media: Media,
        provider_message_id: str,
        chat: Recipient,
        into: MediaSink,
        max_bytes: int,
    ) -> None:
        """Write the file of a message into the sink; one try. Raises MediaError, and whatever
        the sink raises; the sink may then hold a part of the file."""
        ...
