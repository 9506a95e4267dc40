"""An httpx transport over connections that go only to addresses which were checked."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

from memoryproject.foundation.integrations.network.addresses import AddressRules
from memoryproject.foundation.integrations.network.checked_network import CheckedNetwork

# The first kind that fits counts.
_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.TimeoutException, httpx.ReadTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.NetworkError, httpx.ReadError),
    (httpcore.UnsupportedProtocol, httpx.UnsupportedProtocol),
    (httpcore.LocalProtocolError, httpx.LocalProtocolError),
    (httpcore.ProtocolError, httpx.RemoteProtocolError),
)


def checked_client(
    rules: AddressRules,
    *,
    deadline: float,
    timeout: float,
    trusted: ssl.SSLContext,
    plain: httpcore.NetworkBackend | None = None,
) -> httpx.Client:
    """Return a client that asks only addresses that the rules allow, until ``deadline``.

    It follows no redirects. ``plain`` makes the connections; tests pass another one.
    """
    network = CheckedNetwork(rules, deadline, plain=plain)
    transport = CheckedTransport(network, trusted=trusted)
    return httpx.Client(
        timeout=timeout, transport=transport, follow_redirects=False, trust_env=False
    )


class CheckedTransport(httpx.BaseTransport):
    """Sends requests over ``network``, which checks the addresses. It uses no proxy.

    An AddressError of the network propagates.
    """

    def __init__(self, network: httpcore.NetworkBackend, *, trusted: ssl.SSLContext) -> None:
        self._pool = httpcore.ConnectionPool(ssl_context=trusted, network_backend=network)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        sent = httpcore.Request(
            request.method,
            url,
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _httpx_errors():
            answer = self._pool.handle_request(sent)
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _httpx_errors():
            stream: Any = self._answer.stream
            yield from stream

    def close(self) -> None:
        self._answer.close()


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Translate the errors of httpcore to those of httpx, as httpx's own transport does."""
    try:
        yield
    except Exception as error:
        for kind, translated in _ERRORS:
            if isinstance(error, kind):
                raise translated(str(error)) from error
        raise
