"""Decide which addresses may be asked: no private ones (SSRF), unless they are allowed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Protocol

from memoryproject.foundation.errors.stored_errors import ErrorText

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
