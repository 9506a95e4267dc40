"""What the handlers of the ``mcp`` package need: applications, codes and tokens, as stored.

The handlers are asynchronous. Database access happens in the thread that waits for them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode, urlsplit

from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from mcp.server.auth.provider import (
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull as Client, OAuthToken
from pydantic import AnyUrl

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.oauth.grants import GRANTED, ConsentRequest, canonical
from memoryproject.foundation.rest_kit import tokens
from memoryproject.foundation.rest_kit.models import ApiToken, OAuthClient, OAuthGrant

ACCESS_LIFE = timedelta(hours=1)
# Without a call of the application for so long, staff must consent again.
REFRESH_LIFE = timedelta(days=90)
# More than a week of refreshes each hour.
MAX_SPENT = 200
# Anybody may register. Of those that nobody consented to, the newest stay.
MAX_UNUSED_CLIENTS = 1000
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# What a browser runs, reads or sends itself, instead of handing it to an application.
UNSAFE_SCHEME = re.compile(
    "https?|about|blob|data|file|filesystem|ftp|javascript|mailto|vbscript|view-source|wss?"
)
MAX_REDIRECTS, MAX_REDIRECT_LENGTH = 20, 2000
KEPT = {"client_id", "client_id_issued_at", "client_name", "redirect_uris", "grant_types", "scope"}
KEPT |= {"response_types", "token_endpoint_auth_method"}
S256 = re.compile(r"[A-Za-z0-9_-]{43}")
# The request is in the addresses of the consent page and of the login, and servers refuse long
# ones.
MAX_SIGNED = 3000


class RegisteredClient(Client):
    """An application. On a loopback address its redirects may have any port (RFC 8252)."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        known = map(_portless, self.redirect_uris or ())
        if redirect_uri is not None and _portless(redirect_uri) in known:
            return redirect_uri
        return super().validate_redirect_uri(redirect_uri)


def _portless(address: AnyUrl) -> str:
    parts = urlsplit(str(address))
    if parts.scheme != "http" or parts.hostname not in LOOPBACK or "@" in parts.netloc:
        return str(address)
    return parts._replace(netloc=parts.hostname).geturl()


@dataclass(frozen=True)
class Provider:
    """``consent``: the address of the page for staff."""

    issuer: str
    resource: str
    consent: str

    @sync_to_async
    def get_client(self, client_id: str) -> RegisteredClient | None:
        if not client_id.isprintable():
            return None
        found = OAuthClient.objects.filter(pk=client_id).first()
        if found is None:
            return None
        client = RegisteredClient.model_validate(found.metadata)
        if client.token_endpoint_auth_method in ("client_secret_post", "client_secret_basic"):
            client.client_secret = _secret_of(client_id)
        return client

    @sync_to_async
    @transaction.atomic
    def register_client(self, client: Client) -> None:
        """Store the application; drop the oldest unused ones above the limit.

        The response has what this replaces.
        """
        _check_redirects([str(each) for each in client.redirect_uris or ()])
        if not (client.client_name or "").isprintable():
            raise RegistrationError("invalid_client_metadata", "client_name must be printable.")
        client.scope = " ".join(GRANTED)
        client.grant_types = ["authorization_code", "refresh_token"]
        if client.client_secret:
            client.client_secret = _secret_of(client.client_id)
        kept = client.model_dump(mode="json", include=KEPT, exclude_none=True)
        OAuthClient.objects.create(client_id=client.client_id, metadata=kept)
        unused = OAuthClient.objects.filter(oauthgrant=None).order_by("-created_at")
        surplus = list(unused.values_list("pk", flat=True)[MAX_UNUSED_CLIENTS:])
        OAuthClient.objects.filter(pk__in=surplus, oauthgrant=None).delete()

    async def authorize(self, client: Client, params: AuthorizationParams) -> str:
        if params.resource is not None and canonical(params.resource) != self.resource:
            text = f"Tokens are given for {self.resource} only."
            raise AuthorizeError("invalid_target", text)
        if not S256.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge isn't one of S256.")
        wanted = ConsentRequest(
            client_id=client.client_id,
            name=(client.client_name or "")[: tokens.MAX_NAME_LENGTH],
            scopes=[scope for scope in GRANTED if scope in (params.scopes or GRANTED)],
            challenge=params.code_challenge,
            redirect_uri=str(params.redirect_uri),
            redirect_named=params.redirect_uri_provided_explicitly,
            state=params.state,
            resource=self.resource,
            issuer=self.issuer,
        ).signed()
        if len(wanted) > MAX_SIGNED:
            raise AuthorizeError("invalid_request", "redirect_uri and state are too long.")
        return f"{self.consent}?{urlencode({'request': wanted})}"

    # The handlers read nothing of refresh and access tokens that they don't read of codes.

    @sync_to_async
    def load_authorization_code(self, client: Client, code: str) -> AuthorizationCode | None:
        return self._find(client, code, redeemed=False)

    @sync_to_async
    def load_refresh_token(self, client: Client, token: str) -> AuthorizationCode | None:
        return self._find(client, token, redeemed=True)

    @sync_to_async
    @transaction.atomic
    def exchange_refresh_token(
        self, client: Client, token: AuthorizationCode, scopes: Sequence[str] = ()
    ) -> OAuthToken:
        """Use up a code or a refresh token for new tokens. Raises TokenError.

        ``scopes``: those of the grant that the access token is to have. The access token before is
        not valid any more.
        """
        digest = tokens.digest_of(token.code)
        access, refresh = tokens.new_secret(), tokens.new_secret("r_")
        now = timezone.now()
        live = OAuthGrant.objects.select_for_update().filter(token__revoked_at=None)
        grant = live.filter(digest=digest, ends_at__gt=now).first()
        if grant is None:
            raise TokenError("invalid_grant", "It was used already.")
        given = [scope for scope in grant.scopes if scope in (scopes or token.scopes)]
        ApiToken.objects.filter(pk=grant.pk).update(
            digest=tokens.digest_of(access),
            prefix=access[: tokens.SHOWN],
            scopes=given,
            expires_at=now + ACCESS_LIFE,
        )
        grant.digest, grant.redeemed = tokens.digest_of(refresh), True
        grant.spent = [*grant.spent, digest][-MAX_SPENT:]
        grant.ends_at = now + REFRESH_LIFE
        grant.save()
        return OAuthToken(
            access_token=access,
            expires_in=int(ACCESS_LIFE.total_seconds()),
            scope=" ".join(given),
            refresh_token=refresh,
        )

    exchange_authorization_code = exchange_refresh_token

    @sync_to_async
    def load_access_token(self, token: str) -> AuthorizationCode | None:
        """Only to revoke it: calls are authenticated as those with other tokens."""
        grant = OAuthGrant.objects.filter(token__digest=tokens.digest_of(token)).first()
        return _read(grant, token)

    @sync_to_async
    def revoke_token(self, token: AuthorizationCode) -> None:
        """End the whole grant."""
        tokens.token_revoke(token_id=int(token.subject or 0), actor=Actor("api", token.client_id))

    def _find(self, client: Client, secret: str, *, redeemed: bool) -> AuthorizationCode | None:
        """Return the application's grant with this code, or if redeemed, this refresh token.

        One that was used before ends its grant: two have it, and one of them has stolen it.
        """
        digest = tokens.digest_of(secret)
        grants = OAuthGrant.objects.filter(
            client=client.client_id, token__resource=self.resource, token__revoked_at=None
        )
        found = grants.filter(digest=digest, redeemed=redeemed).first()
        if found is None:
            for key in grants.filter(spent__contains=[digest]).values_list("pk", flat=True):
                tokens.token_revoke(token_id=key, actor=SYSTEM)
        return _read(found, secret)


def _read(grant: OAuthGrant | None, secret: str) -> AuthorizationCode | None:
    """Return a grant as the handlers read it."""
    if grant is None:
        return None
    return AuthorizationCode(
        code=secret,
        scopes=grant.scopes,
        expires_at=grant.ends_at.timestamp(),
        client_id=grant.client_id,
        code_challenge=grant.challenge,
        redirect_uri=AnyUrl(grant.redirect_uri),
        redirect_uri_provided_explicitly=grant.redirect_named,
        subject=str(grant.pk),
    )


def _secret_of(client_id: str) -> str:
    """Return the secret of an application that wants one. It follows from the server's own."""
    return salted_hmac("oauth.client", client_id, algorithm="sha256").hexdigest()


def _check_redirects(addresses: Sequence[str]) -> None:
    """Raises RegistrationError."""
    if len(addresses) > MAX_REDIRECTS or any(len(each) > MAX_REDIRECT_LENGTH for each in addresses):
        raise RegistrationError("invalid_redirect_uri", "The addresses are too many or too long.")
    for address in addresses:
        parts = urlsplit(address)
        is_web = parts.scheme == "https" and bool(parts.hostname)
        is_local = parts.scheme == "http" and parts.hostname in LOOPBACK
        is_app = not UNSAFE_SCHEME.fullmatch(parts.scheme)
        if not (is_web or is_local or is_app) or parts.fragment or "@" in parts.netloc:
            raise RegistrationError(
                "invalid_redirect_uri",
                f"{address[:200]} isn't https, http on a loopback address, or of an application.",
            )
