"""What an application asks staff for, and what they consent to."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.core import signing
from django.db import transaction
from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.rest_kit.models import OAuthClient, OAuthGrant
from memoryproject.foundation.rest_kit.tokens import TokenError, digest_of, new_secret, token_create

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
