"""Who is calling: a token, or staff who are logged in to the admin."""

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

from memoryproject.api.callers import Caller, caller_of_staff, caller_of_token
from memoryproject.api.tokens import token_find, token_used

FORM = "Authorization must be the word Token, a space and the token."
ANOTHER = "Make another by `manage.py create_api_token`, or in the admin."


class TokenAuthentication(BaseAuthentication):
    """``Authorization: Token …``"""

    def authenticate(self, request: Request) -> tuple[Caller, Caller] | None:
        word, _, secret = get_authorization_header(request).partition(b" ")
        if word.lower() != b"token":
            return None
        try:
            given = secret.strip().decode("ascii")
        except UnicodeDecodeError:
            raise AuthenticationFailed(FORM) from None
        if not given or not given.isprintable() or " " in given:
            raise AuthenticationFailed(FORM)
        return self._known(given)

    def _known(self, secret: str) -> tuple[Caller, Caller]:
        now = timezone.now()
        token = token_find(secret)
        if token is None:
            raise AuthenticationFailed(f"There is no such token. {ANOTHER}")
        if token.revoked_at is not None:
            raise AuthenticationFailed(f"The token was revoked. {ANOTHER}")
        if token.is_expired(now):
            raise AuthenticationFailed(f"The token has expired. {ANOTHER}")
        token_used(token, now)
        caller = caller_of_token(token)
        return caller, caller

    def authenticate_header(self, request: Request) -> str:
        return "Token"


class StaffAuthentication(SessionAuthentication):
    """The admin's session, with its CSRF token. Who is no staff is nobody here."""

    def authenticate(self, request: Request) -> tuple[Any, Caller] | None:
        user = getattr(request._request, "user", None)
        if user is None or not user.is_active or not user.is_staff:
            return None
        self.enforce_csrf(request)
        return user, caller_of_staff(user)
