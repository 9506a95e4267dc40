"""Fetch files over HTTP from the addresses that a provider gives, and only from those."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from memoryproject.foundation.integrations.whatsapp.media import MediaError, MediaSink
from memoryproject.foundation.integrations.whatsapp.posting import (
    LOOPBACK,
    answer_object,
    retry_after,
    trusted,
)

if TYPE_CHECKING:
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
    ``longest`` for the whole file, in seconds. ``transport`` replaces the network.
    """

    api_url: str
    timeout: float = 15.0
    longest: float = MAX_SECONDS
    transport: httpx.BaseTransport | None = None


def get_object(source: Source, url: str, headers: Mapping[str, str]) -> httpx.Response:
    """GET a response of the provider's API, which may be an error. Raises MediaError."""
    with _as_media_error(), _client(source, url) as client:
        return client.get(url, headers=dict(headers))


def post_object(source: Source, url: str, payload: Mapping[str, Any]) -> httpx.Response:
    """Do the same with POST, for a query that changes nothing."""
    with _as_media_error(), _client(source, url) as client:
        return client.post(url, json=dict(payload))


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
    host = urlsplit(url).hostname
    for _ in range(MAX_REDIRECTS + 1):
        _check_address(url, source.api_url)
        own = headers if urlsplit(url).hostname == host else None
        with (
            _as_media_error(),
            _client(source, url) as client,
            client.stream(
                "GET", url, headers={**(own or {}), "Accept-Encoding": "identity"}
            ) as answer,
        ):
            if not answer.is_redirect:
                _take(answer, into, max_bytes, sha256_hex(sha256), deadline)
                return
            url = urljoin(url, answer.headers.get("location", ""))
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
        retry_after=retry_after(answer),
    )


def error_of_response(answer: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of a good response. Raises MediaError for any other."""
    if not answer.is_success:
        raise failed(answer)
    return answer_object(answer)


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


def _check_address(url: str, api_url: str) -> None:
    """Refuse addresses that could lead to our own network (SSRF). Raises MediaError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if urlsplit(api_url).hostname in LOOPBACK:
        # A stand-in for the provider: all its addresses are on this machine, too.
        if host in LOOPBACK and parts.scheme in ("http", "https"):
            return
    elif parts.scheme == "https" and host and not any(map(_is_inside, _addresses(host))):
        return
    raise MediaError("the file's address is not one to fetch from", code="refused", permanent=True)


def _addresses(host: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, 443)]
    except (OSError, UnicodeError):
        # Only a proxy may know the host. A direct connection won't be made.
        return []


def _is_inside(address: str) -> bool:
    """Return whether an address is in a private, local or special network."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped is not None and not mapped.is_global) or (
        not found.is_global or found.is_multicast
    )


def _client(source: Source, url: str) -> httpx.Client:
    import httpx  # noqa: PLC0415 slow

    return httpx.Client(
        timeout=source.timeout,
        transport=source.transport,
        verify=trusted(),
        follow_redirects=False,
        trust_env=urlsplit(url).hostname not in LOOPBACK,
    )


@contextmanager
def _as_media_error() -> Iterator[None]:
    import httpx  # noqa: PLC0415 slow

    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        raise MediaError(
            f"the file's address can't be used ({type(error).__name__})",
            code="refused",
            permanent=True,
        ) from None
    except httpx.HTTPError as error:
        raise MediaError(f"the file could not be fetched ({type(error).__name__})") from None
