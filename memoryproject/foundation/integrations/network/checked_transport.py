"""An httpx transport over connections that go only to addresses which were checked."""

import ssl
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from typing import Any

import httpcore
import httpx

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.network.addresses import (
    AddressError,
    AddressRules,
    Posted,
    PostError,
    addresses_checked,
    url_parsed,
)
from memoryproject.foundation.integrations.retry import retry_after
from memoryproject.foundation.process.tracing import call_span, note_status


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


class CheckedTransport(httpx.HTTPTransport):
    """Sends requests over ``network``, which checks the addresses. It uses no proxy.

    An AddressError of the network propagates.
    """

    def __init__(self, network: httpcore.NetworkBackend, *, trusted: ssl.SSLContext) -> None:
        super().__init__(verify=trusted, trust_env=False)
        # httpx has no argument for it. Tests show that nothing goes round it, whatever httpx names
        # its pool.
        self._pool = httpcore.ConnectionPool(ssl_context=trusted, network_backend=network)


# Connections that go only to addresses which were checked.


class CheckedNetwork(httpcore.NetworkBackend):
    """Resolve a host, check its addresses, and connect to one of exactly these addresses.

    So a name that resolves differently a moment later (DNS rebinding) has no effect. The
    certificate is verified for the name itself. Everything must end at ``deadline``. ``plain``
    makes the connections; tests pass another one.
    """

    def __init__(
        self, rules: AddressRules, deadline: float, *, plain: httpcore.NetworkBackend | None = None
    ) -> None:
        self._rules = rules
        self._deadline = deadline
        self._plain = plain or httpcore.SyncBackend()

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
            left = _left(self._deadline, httpcore.ConnectTimeout, timeout)
            share = left / (len(addresses) + 1 - place)
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
        return self._stream.read(max_bytes, _left(self._deadline, httpcore.ReadTimeout, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline, httpcore.WriteTimeout, timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = _left(self._deadline, httpcore.ConnectTimeout, timeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        return _TimedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float, late: type[httpcore.TimeoutException], longest: float | None) -> float:
    """Return the seconds until ``deadline``, at most ``longest``. Raises ``late`` after it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise late
    return left if longest is None else min(left, longest)


# Post over HTTP, only to addresses that were checked.


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
        except httpx.TimeoutException:
            raise PostError(ErrorText("webhook_timeout", seconds=f"{self._longest:g}")) from None
        except httpx.ConnectError as error:
            code = "webhook_certificate" if _is_tls(error) else "webhook_unreachable"
            raise PostError(ErrorText(code)) from None
        except (httpx.TransportError, OSError) as error:
            raise PostError(ErrorText("webhook_connection", kind=type(error).__name__)) from None

    def _post(self, url: httpx.URL, headers: Mapping[str, str], body: bytes) -> Posted:
        client = checked_client(
            self._rules,
            deadline=time.monotonic() + self._longest,
            timeout=self._longest,
            trusted=self._trusted,
        )
        # Not of the client, which would add headers of its own.
        timeout = httpx.Timeout(self._longest).as_dict()
        request = httpx.Request(
            "POST", url, headers=headers, content=body, extensions={"timeout": timeout}
        )
        with call_span("POST", str(url)) as traced, client:
            answer = client.send(request, stream=True)
            with closing(answer):
                _read_some(answer)
            note_status(traced, answer.status_code)
            return Posted(answer.status_code, retry_after(answer.headers))


def _read_some(answer: httpx.Response) -> None:
    """Read the response to its end or to MAX_BYTES. Errors don't matter: the status is known."""
    size = 0
    with suppress(httpx.TransportError):
        for block in answer.iter_raw():
            size += len(block)
            if size >= MAX_BYTES:
                return


def _is_tls(error: BaseException | None) -> bool:
    """Return whether the error came from a certificate or from TLS itself."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
