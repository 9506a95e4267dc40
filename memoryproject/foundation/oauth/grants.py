"""How applications name this server; what they ask staff for, and what staff consent to."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.core import signing
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.process.own_address import absolute_url
from memoryproject.foundation.rest_kit.models import FORGET, READ, WRITE, OAuthClient, OAuthGrant
from memoryproject.foundation.rest_kit.tokens import TokenError, digest_of, new_secret, token_create

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


# What an application asks staff for, and what they consent to.


CODE_LIFE = timedelta(minutes=5)
SALT = "oauth.consent"
CONSENT_SECONDS = 900


@dataclass(frozen=True)
class ConsentRequest:
    """What an application wants of staff. ``name``: as it calls itself."""

    client_id: str
    name: str
    scopes: Sequence[str]
    challenge: str
    redirect_uri: str
    redirect_named: bool
    state: str | None
    resource: str
    issuer: str

    @classmethod
    def read(cls, signed: str) -> "ConsentRequest":
        """Read a request that the authorization endpoint has checked. Raises BadSignature."""
        return cls(**signing.loads(signed, salt=SALT, max_age=CONSENT_SECONDS))

    def signed(self) -> str:
        return signing.dumps(asdict(self), salt=SALT, compress=True)

    @property
    def scheme(self) -> str:
        return urlsplit(self.redirect_uri).scheme

    @property
    def place(self) -> str:
        """Where the application is: its host, or the scheme that opens it on this machine."""
        host = urlsplit(self.redirect_uri).netloc
        return host if self.scheme in ("http", "https") else f"{self.scheme}:"

    def answer(self, parameters: Mapping[str, str]) -> HttpResponse:
        """Tell the application the outcome (with RFC 9207's iss).

        Django's own redirect knows the schemes of the web only.
        """
        given = {**parameters, "iss": self.issuer}
        if self.state is not None:
            given["state"] = self.state
        joint = "&" if "?" in self.redirect_uri else "?"
        address = f"{self.redirect_uri}{joint}{urlencode(given)}"
        return HttpResponse(status=302, headers={"Location": address})


@transaction.atomic
def grant_create(
    wanted: ConsentRequest,
    *,
    name: str,
    scopes: Collection[str],
    chat_ids: Collection[UUID] | None,
    actor: Actor,
) -> str:
    """Record a consent; return the code that the application redeems. Raises TokenError."""
    code = new_secret("c_")
    ends_at = timezone.now() + CODE_LIFE
    # Otherwise it could be dropped meanwhile.
    client = OAuthClient.objects.select_for_update().filter(pk=wanted.client_id).first()
    if client is None:
        raise TokenError(_("The application isn't registered any more: start again there."))
    made = token_create(
        name=name,
        scopes=scopes,
        chat_ids=chat_ids,
        expires_at=ends_at,
        resource=wanted.resource,
        actor=actor,
    )
    OAuthGrant.objects.create(
        token=made.token,
        client=client,
        scopes=made.token.scopes,
        digest=digest_of(code),
        challenge=wanted.challenge,
        redirect_uri=wanted.redirect_uri,
        redirect_named=wanted.redirect_named,
        ends_at=ends_at,
    )
    return code
