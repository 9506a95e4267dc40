"""An httpx transport over connections that go only to addresses which were checked."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from memoryproject.foundation.integrations.network.addresses import AddressRules, addresses_checked


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
