"""Decide which addresses may be asked (SSRF); an httpx transport to checked ones only."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Protocol

import httpcore
import httpx

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.retry import retry_after
from memoryproject.foundation.process.tracing import call_span, note_status

if TYPE_CHECKING:
    import httpx

Network = IPv4Network | IPv6Network

MAX_URL_LENGTH = 2_000

# IANA's special-purpose registry, multicast, reserved networks, and the public addresses of a
# cloud's internal services (Azure).
_REFUSED_V4 = [
    IPv4Network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        "168.63.129.16/32",
    )
]
# Loopback, link-local, unique local, multicast, IPv4-mapped and NAT64 addresses are outside of it.
_GLOBAL_V6 = IPv6Network("2000::/3")
# Teredo and its neighbours, documentation, 6to4: they may embed an IPv4 address, or belong to no
# one.
_REFUSED_V6 = [
    IPv6Network("2001::/23"),
    IPv6Network("2001:db8::/32"),
    IPv6Network("2002::/16"),
    IPv6Network("3fff::/20"),
]


class AddressError(ValueError):
    """The address must not be asked; the text states the reason."""


class UnresolvedError(AddressError):
    """The host has no address, at least now."""


def resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a host from the system's resolver. Raises OSError, UnicodeError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(frozen=True)
class AddressRules:
    """The rules for addresses that may be asked.

    ``allowed``: private and special networks that are permitted. ``allow_http``: permit addresses
    without TLS. ``resolve``: returns the addresses of a host.
    """

    allowed: tuple[Network, ...] = ()
    allow_http: bool = False
    resolve: Callable[[str, int], Sequence[str]] = resolved

    @classmethod
    def of(cls, networks: Iterable[str], *, allow_http: bool) -> AddressRules:
        """Build the rules. ``networks`` is in the form of the settings, such as 10.0.0.0/8."""
        allowed = tuple(ip_network(network) for network in networks)
        return cls(allowed=allowed, allow_http=allow_http)


def url_parsed(url: str, rules: AddressRules) -> httpx.URL:
    """Return the parsed URL if its form is allowed. Raises AddressError."""
    import httpx  # noqa: PLC0415 slow

    if len(url) > MAX_URL_LENGTH:
        raise AddressError(ErrorText("url_too_long", most=MAX_URL_LENGTH))
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise AddressError(ErrorText("url_characters"))
    try:
        parsed = httpx.URL(url)
        # Only here are names of other scripts decoded (IDNA).
        host = parsed.host
    except (httpx.InvalidURL, UnicodeError) as error:
        raise AddressError(ErrorText("url_invalid", why=error)) from error
    if parsed.scheme not in ("http", "https") or not host:
        raise AddressError(ErrorText("url_no_host"))
    if parsed.scheme == "http" and not rules.allow_http:
        raise AddressError(ErrorText("url_needs_https"))
    if parsed.port is not None and not 1 <= parsed.port <= 65_535:
        raise AddressError(ErrorText("url_port"))
    if parsed.userinfo:
        raise AddressError(ErrorText("url_credentials"))
    if parsed.fragment:
        raise AddressError(ErrorText("url_fragment"))
    return parsed


def url_checked(url: str, rules: AddressRules) -> None:
    """Check that this URL may be posted to, as its host resolves now. Raises AddressError."""
    parsed = url_parsed(url, rules)
    addresses_checked(host_of(parsed), port_of(parsed), rules)


def addresses_checked(host: str, port: int, rules: AddressRules) -> list[str]:
    """Return the addresses of a host if all of them are allowed. Raises AddressError."""
    try:
        found = list(rules.resolve(host, port))
    except (OSError, UnicodeError) as error:
        raise UnresolvedError(ErrorText("host_unresolved")) from error
    if not found:
        raise UnresolvedError(ErrorText("host_unresolved"))
    for address in found:
        address_checked(address, rules)
    return found


def address_checked(address: str, rules: AddressRules) -> None:
    """Raises AddressError if the address is in a private or special network that isn't allowed."""
    try:
        parsed = ip_address(address)
    except ValueError as error:
        raise AddressError(ErrorText("host_no_address")) from error
    if not _is_public(parsed) and not any(parsed in network for network in rules.allowed):
        raise AddressError(ErrorText("host_private", address=address))


def host_of(url: httpx.URL) -> str:
    """Return the host in the form for a lookup: without brackets, in ASCII."""
    return url.raw_host.decode("ascii")


def port_of(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    # An address with a zone ("%eth0") belongs to one link only.
    if address.scope_id or address not in _GLOBAL_V6:
        return False
    return not any(address in network for network in _REFUSED_V6)


# The interface for posting webhooks. This module imports no HTTP client: those are slow to import.


@dataclass(frozen=True)
class Posted:
    """The receiver's response.

    ``retry_after``: the seconds that it asked to wait, None if it asked for no wait.
    """

    status: int
    retry_after: float | None = None


class PostError(Exception):
    """No response came. The text states the reason, never the URL, which may hold a token."""


class Poster(Protocol):
    """Posts a body to an address."""

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        """Post once and follow no redirect. Raises PostError."""


# An httpx transport over connections that go only to addresses which were checked.


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
