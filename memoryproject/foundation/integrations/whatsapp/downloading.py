"""Fetch files over HTTP from the addresses that a provider gives, and only from those."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from memoryproject.foundation.integrations.network import addresses
from memoryproject.foundation.integrations.retry import retry_after
from memoryproject.foundation.integrations.whatsapp.base import MediaError, MediaSink
from memoryproject.foundation.integrations.whatsapp.posting import LOOPBACK, http_client, trusted
from memoryproject.foundation.process.tracing import call_span, note_status

if TYPE_CHECKING:
    import httpcore
    import httpx

MAX_REDIRECTS = 3
# For the whole file: a slower download is aborted.
MAX_SECONDS = 45.0
_GONE = (401, 403, 404, 410)
_HEX = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Source:
    """The way to fetch a provider's files.

    ``api_url`` is the configured address of its API. If that is on this machine, the files must be,
    too; otherwise they must not be. ``timeout`` is for connecting and between two blocks,
    ``longest`` for the whole file, in seconds. ``rules`` are those for the addresses of files.
    ``network`` makes the connections to them, and ``transport`` replaces all of the network.
    """

    api_url: str
    timeout: float = 15.0
    longest: float = MAX_SECONDS
    transport: httpx.BaseTransport | None = None
    rules: addresses.AddressRules = field(default_factory=addresses.AddressRules)
    network: httpcore.NetworkBackend | None = None

    @property
    def is_stand_in(self) -> bool:
        """Return whether the provider is a stand-in on this machine."""
        return urlsplit(self.api_url).hostname in LOOPBACK


def ask_about_file(source: Source, method: str, url: str, **request: Any) -> httpx.Response:
    """Ask the provider's API, which changes nothing; the answer may be an error.

    ``request``: what httpx takes of it. Raises MediaError.
    """
    with call_span(method, url) as traced, _as_media_error(), _client(source, url) as client:
        answer = client.request(method, url, **request)
        note_status(traced, answer.status_code)
        return answer


def download(
    source: Source,
    url: str,
    *,
    into: MediaSink,
    max_bytes: int,
    headers: Mapping[str, str] | None = None,
    sha256: str = "",
) -> None:
    """Write the file at ``url`` into the sink. Raises MediaError.

    ``sha256`` (hex or base64; empty: unknown) is the expected hash. ``headers`` go to the first
    host only. The error's text never holds the URL, which may hold a token.
    """
    deadline = time.monotonic() + source.longest
    first_host = _checked_host(url, source)
    for _ in range(MAX_REDIRECTS + 1):
        own = headers if _checked_host(url, source) == first_host else None
        with (
            call_span("GET", url) as traced,
            _as_media_error(),
            _file_client(source, url, deadline) as client,
            client.stream(
                "GET", url, headers={**(own or {}), "Accept-Encoding": "identity"}
            ) as answer,
        ):
            note_status(traced, answer.status_code)
            if not answer.is_redirect:
                _take(answer, into, max_bytes, sha256_hex(sha256), deadline)
                return
            url = _joined(url, answer.headers.get("location", ""))
    raise MediaError("the file is redirected too often", code="refused", permanent=True)


def failed(answer: httpx.Response) -> MediaError:
    """Return the error for a response that isn't the file."""
    status = answer.status_code
    if status in _GONE:
        return MediaError(f"HTTP {status} instead of the file", code="gone", permanent=True)
    again = status >= 500 or status in (408, 425, 429)
    return MediaError(
        f"HTTP {status} instead of the file",
        permanent=not again,
        retry_after=retry_after(answer.headers),
    )


def sha256_hex(value: str) -> str:
    """Return a SHA-256 in hex, given as hex or base64; empty where it is neither."""
    if _HEX.fullmatch(value):
        return value.lower()
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) == 32 else ""


def _take(
    answer: httpx.Response, into: MediaSink, max_bytes: int, sha256: str, deadline: float
) -> None:
    if not answer.is_success:
        raise failed(answer)
    announced = answer.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > max_bytes:
        raise too_large()
    digest = hashlib.sha256()
    size = 0
    for block in answer.iter_raw():
        size += len(block)
        if size > max_bytes:
            raise too_large()
        if time.monotonic() > deadline:
            raise MediaError("the file came too slowly")
        digest.update(block)
        into.write(block)
    if sha256 and digest.hexdigest() != sha256:
        raise MediaError("the file is not the one that was announced: its SHA-256 differs")


def too_large() -> MediaError:
    return MediaError("the file is larger than the limit", code="too_large", permanent=True)


def _checked_host(url: str, source: Source) -> str:
    """Return the URL's host. Raises MediaError for URLs that no provider's file has.

    The address itself is checked as it is connected to: see ``_file_client``.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused() from None
    if source.is_stand_in:
        # All its addresses are on this machine, too.
        if host in LOOPBACK and parts.scheme in ("http", "https"):
            return host
    elif host and parts.scheme == "https" and port in (None, 443):
        return host
    raise _refused()


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        raise _refused() from None


def _refused() -> MediaError:
    return MediaError("the file's address is not one to fetch from", code="refused", permanent=True)


def _file_client(source: Source, url: str, deadline: float) -> httpx.Client:
    """Return a client that connects to a provider's stand-in, or else to public addresses only.

    A name is resolved once, and the connection goes to the address that was checked.
    """
    if source.is_stand_in or source.transport:
        return _client(source, url)
    from memoryproject.foundation.integrations.network.checked_transport import checked_client  # noqa: PLC0415 slow

    return checked_client(
        source.rules,
        deadline=deadline,
        timeout=source.timeout,
        trusted=trusted(),
        plain=source.network,
    )


def _client(source: Source, url: str) -> httpx.Client:
    return http_client(url, source.timeout, source.transport)


@contextmanager
def _as_media_error() -> Iterator[None]:
    import httpx  # noqa: PLC0415 slow

    try:
        yield
    except addresses.UnresolvedError:
        raise MediaError("the host of the file's address has no address") from None
    except addresses.AddressError:
        raise _refused() from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        raise MediaError(
            f"the file's address can't be used ({type(error).__name__})",
            code="refused",
            permanent=True,
        ) from None
    except httpx.HTTPError as error:
        raise MediaError(f"the file could not be fetched ({type(error).__name__})") from None
