"""Post over HTTP, only to addresses that were checked."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

import httpcore
import httpx

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.hooks.addresses import (
    AddressError,
    AddressRules,
    addresses_checked,
    host_of,
    port_of,
    url_parsed,
)
from memoryproject.foundation.integrations.hooks.base import Posted, PostError
from memoryproject.foundation.integrations.retry import parse_retry_after

# For the whole request: connecting, TLS, sending and the response, however slowly it arrives.
MAX_SECONDS = 15.0
# Enough for usual responses. Their content is ignored.
MAX_BYTES = 4_096


class HttpPoster:
    """Posts each body over a new connection.

    No proxy is used: it would connect to unchecked addresses. ``trusted`` is for servers with
    private certificates.
    """

    def __init__(
        self,
        rules: AddressRules,
        *,
        longest: float = MAX_SECONDS,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self._rules = rules
        self._longest = longest
        self._trusted = trusted or httpx.create_ssl_context(trust_env=False)

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        """Raises PostError."""
        try:
            return self._post(url_parsed(url, self._rules), headers, body)
        except AddressError as error:
            raise PostError(error_text(error)) from None
        except httpcore.TimeoutException:
            raise PostError(ErrorText("webhook_timeout", seconds=f"{self._longest:g}")) from None
        except httpcore.ConnectError as error:
            code = "webhook_certificate" if _is_tls(error) else "webhook_unreachable"
            raise PostError(ErrorText(code)) from None
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.UnsupportedProtocol,
            OSError,
        ) as error:
            raise PostError(ErrorText("webhook_connection", kind=type(error).__name__)) from None

    def _post(self, url: httpx.URL, headers: Mapping[str, str], body: bytes) -> Posted:
        target = httpcore.URL(
            scheme=url.scheme,
            host=host_of(url),
            port=port_of(url),
            target=url.raw_path,
        )
        sent: list[tuple[bytes | str, bytes | str]] = [
            ("Host", url.netloc),
            ("Content-Length", str(len(body))),
            *headers.items(),
        ]
        network = _CheckedNetwork(self._rules, time.monotonic() + self._longest)
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), self._longest)
        with (
            httpcore.ConnectionPool(ssl_context=self._trusted, network_backend=network) as pool,
            pool.stream(
                "POST", target, headers=sent, content=body, extensions={"timeout": timeout}
            ) as answer,
        ):
            received = {name.lower(): value for name, value in answer.headers}
            _read_some(answer)
            return Posted(answer.status, _wait_of(received.get(b"retry-after")))


def _read_some(answer: httpcore.Response) -> None:
    """Read the response to its end or to MAX_BYTES. Errors don't matter: the status is known."""
    size = 0
    try:
        for block in answer.iter_stream():
            size += len(block)
            if size >= MAX_BYTES:
                return
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException):
        return


def _wait_of(header: bytes | None) -> float | None:
    if header is None:
        return None
    return parse_retry_after(header.decode("latin-1"), now=datetime.now(timezone.utc))


def _is_tls(error: BaseException | None) -> bool:
    """Return whether the error came from a certificate or from TLS itself."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False


class _CheckedNetwork(httpcore.NetworkBackend):
    """Resolve a host, check its addresses, and connect to one of exactly these addresses.

    So a name that resolves differently a moment later (DNS rebinding) has no effect. The
    certificate is verified for the name itself. Everything must end at ``deadline``.
    """

    def __init__(self, rules: AddressRules, deadline: float) -> None:
        self._rules = rules
        self._deadline = deadline
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        addresses = addresses_checked(host, port, self._rules)
        for place, address in enumerate(addresses, start=1):
            # Each address gets a share of the time: one that never responds leaves time for the
            # next.
            share = _left(self._deadline, httpcore.ConnectTimeout) / (len(addresses) + 1 - place)
            try:
                stream = self._plain.connect_tcp(address, port, timeout=share)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if place == len(addresses):
                    raise
            else:
                return _TimedStream(stream, self._deadline)
        raise AssertionError("not reached")


class _TimedStream(httpcore.NetworkStream):
    """A stream that ends at a fixed time, even if data is left to read."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadline, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _left(self._deadline, httpcore.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _TimedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float, late: type[httpcore.TimeoutException]) -> float:
    """Return the seconds until ``deadline``. Raises ``late`` when it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise late
    return left
