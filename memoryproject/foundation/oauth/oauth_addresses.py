"""How clients name this server, and what they are told where they lack a token or a scope."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.http import HttpRequest

from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.foundation.rest_kit.models import FORGET, READ, WRITE

# Those that tools need. Consent can leave some out.
GRANTED = (READ, WRITE, FORGET)
METADATA = "/.well-known/oauth-protected-resource/mcp"
DEFAULT_PORTS = {"http": 80, "https": 443}


def canonical(address: str) -> str:
    """Return an address in the one form in which addresses are compared; empty for an unusable one.

    Hosts are in lower case, without the scheme's own port and without a slash at the end.
    """
    try:
        parts = urlsplit(address.strip())
        port = parts.port
    except ValueError:
        return ""
    if not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown_port = "" if port in (None, DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    return f"{parts.scheme}://{host}{shown_port}{parts.path.rstrip('/')}"


def issuer_of(request: HttpRequest) -> str:
    """Return the address of the server: BASE_URL, or where that isn't set, the request's."""
    return canonical(absolute_url("/", request))


def resource_of(request: HttpRequest) -> str:
    """Return the address of the MCP server, for which access tokens are given."""
    return f"{issuer_of(request)}/mcp"


def challenge(request: HttpRequest, *, code: str = "", scopes: Iterable[str] = GRANTED) -> str:
    """Return the header WWW-Authenticate, which tells clients where to get a token (RFC 9728).

    ``code``: OAuth's, of what is wrong with a token that was sent.
    """
    begin = f'error="{code}", ' if code else ""
    metadata = f'resource_metadata="{issuer_of(request)}{METADATA}"'
    return f'Bearer {begin}{metadata}, scope="{" ".join(scopes)}"'
