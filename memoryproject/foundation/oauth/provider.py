"""What the handlers of the ``mcp`` package need to know: applications, codes and tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from asgiref.sync import sync_to_async
from django.utils.crypto import salted_hmac
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.oauth import grants
from memoryproject.foundation.oauth.grants import ACCESS_LIFE, ConsentRequest
from memoryproject.foundation.oauth.oauth_addresses import GRANTED, canonical
from memoryproject.foundation.rest_kit.models import OAuthGrant
from memoryproject.foundation.rest_kit.tokens import MAX_NAME_LENGTH, token_revoke

LOOPBACK = ("localhost", "127.0.0.1", "::1")
# What a browser runs, reads or sends itself, instead of handing it to an application.
UNSAFE_SCHEMES = frozenset(
    [
        "about",
        "blob",
        "data",
        "file",
        "filesystem",
        "ftp",
        "javascript",
        "mailto",
        "vbscript",
        "view-source",
        "ws",
        "wss",
    ]
)
MAX_REDIRECTS, MAX_REDIRECT_LENGTH = 20, 2000
KEPT = {"client_id", "client_id_issued_at", "client_name", "redirect_uris", "grant_types", "scope"}
KEPT |= {"response_types", "token_endpoint_auth_method"}
WITH_SECRET = ("client_secret_post", "client_secret_basic")
S256 = re.compile(r"[A-Za-z0-9_-]{43}")
# The request is in the addresses of the consent page and of the login, and servers refuse long
# ones.
MAX_SIGNED = 3000


class RegisteredClient(OAuthClientInformationFull):
    """An application. On a loopback address its redirects may have any port (RFC 8252)."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        if redirect_uri is not None and _portless(redirect_uri) in map(
            _portless, self.redirect_uris or ()
        ):
            return redirect_uri
        return super().validate_redirect_uri(redirect_uri)


def _portless(address: AnyUrl) -> str:
    parts = urlsplit(str(address))
    if parts.scheme != "http" or parts.hostname not in LOOPBACK or "@" in parts.netloc:
        return str(address)
    return parts._replace(netloc=parts.hostname).geturl()


@dataclass(frozen=True)
class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """``consent``: the address of the page for staff."""

    issuer: str
    resource: str
    consent: str

    async def get_client(self, client_id: str) -> RegisteredClient | None:
        found = await sync_to_async(grants.client_metadata)(client_id)
        if found is None:
            return None
        client = RegisteredClient.model_validate(found)
        if client.token_endpoint_auth_method in WITH_SECRET:
            client.client_secret = _secret_of(client_id)
        return client

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Store the application. The response has what this replaces."""
        _check_redirects([str(each) for each in client_info.redirect_uris or ()])
        if not (client_info.client_name or "").isprintable():
            raise RegistrationError("invalid_client_metadata", "client_name must be printable.")
        client_info.scope = " ".join(GRANTED)
        client_info.grant_types = ["authorization_code", "refresh_token"]
        if client_info.client_secret:
            client_info.client_secret = _secret_of(client_info.client_id)
        kept = client_info.model_dump(mode="json", include=KEPT, exclude_none=True)
        await sync_to_async(grants.client_store)(client_info.client_id, kept)

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        if params.resource is not None and canonical(params.resource) != self.resource:
            text = f"Tokens are given for {self.resource} only."
            raise AuthorizeError("invalid_target", text)
        if not S256.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge isn't one of S256.")
        wanted = ConsentRequest(
            client_id=client.client_id,
            name=(client.client_name or "")[:MAX_NAME_LENGTH],
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

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        grant = await self._find(client, authorization_code, redeemed=False)
        if grant is None:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=grant.scopes,
            expires_at=grant.ends_at.timestamp(),
            client_id=client.client_id,
            code_challenge=grant.challenge,
            redirect_uri=AnyUrl(grant.redirect_uri),
            redirect_uri_provided_explicitly=grant.redirect_named,
            resource=self.resource,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return await _issued(authorization_code.code, authorization_code.scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        grant = await self._find(client, refresh_token, redeemed=True)
        if grant is None:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=client.client_id,
            scopes=grant.scopes,
            expires_at=int(grant.ends_at.timestamp()),
            subject=str(grant.pk),
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        return await _issued(refresh_token.token, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        """Only to revoke it: calls are authenticated as those with other tokens."""
        grant = await sync_to_async(grants.grant_of_access)(token)
        if grant is None:
            return None
        return AccessToken(
            token=token, client_id=grant.client_id, scopes=grant.scopes, subject=str(grant.pk)
        )

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """End the whole grant."""
        actor = Actor("api", token.client_id)
        await sync_to_async(token_revoke)(token_id=int(token.subject or 0), actor=actor)

    async def _find(
        self, client: OAuthClientInformationFull, secret: str, *, redeemed: bool
    ) -> OAuthGrant | None:
        return await sync_to_async(grants.grant_find)(
            secret, redeemed=redeemed, client_id=client.client_id, resource=self.resource
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
        is_app = parts.scheme not in {"http", "https", *UNSAFE_SCHEMES}
        if not (is_web or is_local or is_app) or parts.fragment or "@" in parts.netloc:
            raise RegistrationError(
                "invalid_redirect_uri",
                f"{address[:200]} isn't https, http on a loopback address, or of an application.",
            )


async def _issued(secret: str, scopes: list[str]) -> OAuthToken:
    issued = await sync_to_async(grants.tokens_issue)(secret, scopes)
    if issued is None:
        raise TokenError("invalid_grant", "It was used already.")
    return OAuthToken(
        access_token=issued.access_token,
        expires_in=int(ACCESS_LIFE.total_seconds()),
        scope=" ".join(issued.scopes),
        refresh_token=issued.refresh_token,
    )
