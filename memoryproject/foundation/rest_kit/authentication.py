"""Authenticate the caller: a token, or staff who are logged in to the admin."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.authentication import (
    BaseAuthentication,
    SessionAuthentication,
    get_authorization_header,
)
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from memoryproject.foundation.rest_kit.callers import Caller, caller_of_staff, caller_of_token
from memoryproject.foundation.rest_kit.tokens import token_find, token_used

# Of RFC 6750, and the older one that Django REST framework uses.
SCHEMES = ("Bearer", "Token")
# Also for a token in a header of its own, or without a word before it.
NOT_GIVEN = (
    f"There is no token in the header Authorization: write the word {SCHEMES[0]}, a space and the "
    "token into it."
)
ANOTHER = "Make another by `manage.py create_api_token`, or in the admin."


class TokenAuthentication(BaseAuthentication):
    """Authenticate ``Authorization: Bearer …`` or ``Authorization: Token …``."""

    def authenticate(self, request: Request) -> tuple[Caller, Caller] | None:
        word, _, secret = get_authorization_header(request).partition(b" ")
        if word.decode("latin-1").capitalize() not in SCHEMES:
            return None
        form = f"Authorization must be the word {' or '.join(SCHEMES)}, a space and the token."
        try:
            given = secret.strip().decode("ascii")
        except UnicodeDecodeError:
            raise AuthenticationFailed(form) from None
        if not given or not given.isprintable() or " " in given:
            raise AuthenticationFailed(form)
        caller = caller_with(given)
        return caller, caller

    def authenticate_header(self, request: Request) -> str:
        return SCHEMES[0]


def caller_with(secret: str) -> Caller:
    """Return the caller that owns this token, and record its use. Raises AuthenticationFailed."""
    now = timezone.now()
    token = token_find(secret)
    if token is None:
        raise AuthenticationFailed(f"There is no such token. {ANOTHER}")
    if token.revoked_at is not None:
        raise AuthenticationFailed(f"The token was revoked. {ANOTHER}")
    if token.is_expired(now):
        raise AuthenticationFailed(f"The token has expired. {ANOTHER}")
    token_used(token, now)
    return caller_of_token(token)


class StaffAuthentication(SessionAuthentication):
    """Authenticate by the admin's session, with its CSRF token. Only staff are accepted."""

    def authenticate(self, request: Request) -> tuple[Any, Caller] | None:
        user = getattr(request._request, "user", None)
        if user is None or not user.is_active or not user.is_staff:
            return None
        self.enforce_csrf(request)
        return user, caller_of_staff(user)
