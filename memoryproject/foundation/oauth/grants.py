"""Store registered applications and what staff consented to; give out tokens and replace them."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.core import signing
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.rest_kit.models import ApiToken, OAuthClient, OAuthGrant
from memoryproject.foundation.rest_kit.tokens import (
    MARK,
    SHOWN,
    TokenError,
    digest_of,
    token_create,
    token_revoke,
)

CODE_LIFE = timedelta(minutes=5)
ACCESS_LIFE = timedelta(hours=1)
# Without a call of the application for so long, staff must consent again.
REFRESH_LIFE = timedelta(days=90)
# Anybody may register. Of those that nobody consented to, the newest stay.
MAX_UNUSED_CLIENTS = 1000
SALT = "oauth.consent"
CONSENT_SECONDS = 900
# More than a week of refreshes each hour.
MAX_SPENT = 200


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
    def read(cls, signed: str) -> ConsentRequest:
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

    def answer(self, parameters: Mapping[str, str]) -> str:
        """Return the address that tells the application the outcome (with RFC 9207's iss)."""
        given = {**parameters, "iss": self.issuer}
        if self.state is not None:
            given["state"] = self.state
        joint = "&" if "?" in self.redirect_uri else "?"
        return f"{self.redirect_uri}{joint}{urlencode(given)}"


@dataclass(frozen=True)
class Issued:
    access_token: str
    refresh_token: str
    scopes: Sequence[str]


def client_store(client_id: str, metadata: dict[str, Any]) -> None:
    """Store an application that registers itself; drop the oldest unused ones above the limit."""
    with transaction.atomic():
        OAuthClient.objects.create(client_id=client_id, metadata=metadata)
        unused = OAuthClient.objects.filter(oauthgrant=None).order_by("-created_at")
        surplus = list(unused.values_list("pk", flat=True)[MAX_UNUSED_CLIENTS:])
        OAuthClient.objects.filter(pk__in=surplus, oauthgrant=None).delete()


def client_metadata(client_id: str) -> dict[str, Any] | None:
    """Return what an application registered. ``client_id``: any text."""
    if not client_id.isprintable():
        return None
    return OAuthClient.objects.filter(pk=client_id).values_list("metadata", flat=True).first()


def grant_create(
    wanted: ConsentRequest,
    *,
    name: str,
    scopes: Collection[str],
    chat_ids: Collection[UUID] | None,
    actor: Actor,
) -> str:
    """Record a consent; return the code that the application redeems. Raises TokenError."""
    code = _new_secret("c_")
    ends_at = timezone.now() + CODE_LIFE
    with transaction.atomic():
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


def grant_find(secret: str, *, redeemed: bool, client_id: str, resource: str) -> OAuthGrant | None:
    """Return the application's grant with this code, or if that is redeemed, this refresh token.

    One that was used before ends its grant: two have it, and one of them has stolen it.
    """
    digest = digest_of(secret)
    grants = OAuthGrant.objects.filter(
        client=client_id, token__resource=resource, token__revoked_at=None
    )
    found = grants.filter(digest=digest, redeemed=redeemed).first()
    if found is None:
        for key in grants.filter(spent__contains=[digest]).values_list("pk", flat=True):
            token_revoke(token_id=key, actor=SYSTEM)
    return found


def grant_of_access(secret: str) -> OAuthGrant | None:
    return OAuthGrant.objects.filter(token__digest=digest_of(secret)).first()


def tokens_issue(secret: str, scopes: Collection[str]) -> Issued | None:
    """Use up a code or a refresh token for new tokens; None where another call was faster.

    ``scopes``: those of the grant that the access token is to have. The access token before is not
    valid any more.
    """
    digest = digest_of(secret)
    access, refresh = _new_secret(), _new_secret("r_")
    now = timezone.now()
    with transaction.atomic():
        live = OAuthGrant.objects.select_for_update().filter(token__revoked_at=None)
        grant = live.filter(digest=digest, ends_at__gt=now).first()
        if grant is None:
            return None
        given = [scope for scope in grant.scopes if scope in scopes]
        ApiToken.objects.filter(pk=grant.pk).update(
            digest=digest_of(access),
            prefix=access[:SHOWN],
            scopes=given,
            expires_at=now + ACCESS_LIFE,
        )
        grant.digest, grant.redeemed = digest_of(refresh), True
        grant.spent = [*grant.spent, digest][-MAX_SPENT:]
        grant.ends_at = now + REFRESH_LIFE
        grant.save()
    return Issued(access, refresh, given)


def _new_secret(kind: str = "") -> str:
    return MARK + kind + secrets.token_urlsafe(32)
