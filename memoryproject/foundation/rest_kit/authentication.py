"""Authenticate the caller: a token, or staff who are logged in to the admin."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone
from rest_framework.authentication import (
    BaseAuthentication,
    SessionAuthentication,
    get_authorization_header,
)
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.rest_kit.models import ANY, READ, STAFF_PERMISSIONS, ApiToken
from memoryproject.foundation.rest_kit.tokens import token_find, token_used

# Of RFC 6750, and the older one that Django REST framework uses.
SCHEMES = ("Bearer", "Token")
# Also for a token in a header of its own, or without a word before it.
NOT_GIVEN = (
    f"There is no token in the header Authorization: write the word {SCHEMES[0]}, a space and the "
    "token into it."
)
# In the environment of a request, where no client can write: the address that tokens of
# applications (OAuth) must have been given for. Where it isn't set, they aren't valid.
RESOURCE = "memory.resource"
ANOTHER = "Make another by `manage.py create_api_token`, or in the admin."


class TokenAuthentication(BaseAuthentication):
    """Authenticate ``Authorization: Bearer …`` or ``Authorization: Token …``."""

    def authenticate(self, request: Request) -> "tuple[Caller, Caller] | None":
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
        caller = caller_with(given, resource=request.META.get(RESOURCE, ""))
        return caller, caller

    def authenticate_header(self, request: Request) -> str:
        return SCHEMES[0]


def caller_with(secret: str, *, resource: str = "") -> "Caller":
    """Return the caller that owns this token, and record its use. Raises AuthenticationFailed.

    ``resource``: where the token is used, as OAuth names it.
    """
    now = timezone.now()
    token = token_find(secret)
    if token is None:
        raise AuthenticationFailed(f"There is no such token. {ANOTHER}")
    if token.revoked_at is not None:
        raise AuthenticationFailed(f"The token was revoked. {ANOTHER}")
    if token.resource and token.resource != resource:
        raise AuthenticationFailed("The token was given to an application for another address.")
    if token.is_expired(now):
        raise AuthenticationFailed(f"The token has expired. {ANOTHER}")
    token_used(token, now)
    return caller_of_token(token)


class StaffAuthentication(SessionAuthentication):
    """Authenticate by the admin's session, with its CSRF token. Only staff are accepted."""

    def authenticate(self, request: Request) -> "tuple[Any, Caller] | None":
        user = getattr(request._request, "user", None)
        if user is None or not user.is_active or not user.is_staff:
            return None
        self.enforce_csrf(request)
        return user, caller_of_staff(user)


# The caller of a request, and the chats that the caller may access.


@dataclass(frozen=True)
class Caller:
    """A token or a staff member.

    ``key`` identifies the caller in tables. ``chat_ids``: the chats that a token is bound to; None:
    the caller may access all chats. ``expires_at``: when a token ends, if it does.
    ``is_granted``: an application has the token by OAuth, and can ask for more scopes.
    """

    key: str
    actor: Actor
    scopes: frozenset[str]
    chat_ids: frozenset[UUID] | None = None
    expires_at: datetime | None = None
    is_granted: bool = False

    @property
    def is_authenticated(self) -> bool:
        return True

    @property
    def is_staff(self) -> bool:
        return self.actor.kind == "staff"

    @property
    def is_bound(self) -> bool:
        return self.chat_ids is not None

    def may_see(self, chat_id: UUID | None) -> bool:
        """Return whether the caller may access this chat; None is for unbound callers only."""
        return self.chat_ids is None or chat_id in self.chat_ids

    def reach(self, field: str = "chat_id") -> Q:
        """Return the condition on rows that the chat in ``field`` is one the caller may access."""
        return Q() if self.chat_ids is None else Q(**{f"{field}__in": self.chat_ids})


def caller_of_token(token: ApiToken) -> Caller:
    return Caller(
        key=f"token:{token.pk}",
        actor=Actor("api", token.name),
        scopes=frozenset(token.scopes),
        chat_ids=None if token.chat_ids is None else frozenset(token.chat_ids),
        expires_at=token.expires_at,
        is_granted=bool(token.resource),
    )


def caller_of_staff(user: Any) -> Caller:
    """Return the caller for a staff user. A superuser has every scope."""
    scopes = {scope for scope, names in STAFF_PERMISSIONS.items() if user.has_perms(names)}
    return Caller(
        key=f"staff:{user.pk}", actor=Actor("staff", user.get_username()), scopes=frozenset(scopes)
    )


def caller_of(request: Request) -> Caller | None:
    """Return the caller of this request, or None if nobody is authenticated."""
    found = request.auth
    return found if isinstance(found, Caller) else None


def require_caller(request: Request) -> Caller:
    """Return the caller. Raises NotAuthenticated, which tells where a token belongs."""
    caller = caller_of(request)
    if caller is None:
        raise NotAuthenticated(NOT_GIVEN)
    return caller


# Check the caller's scopes, and refuse everything that no scope allows.


class HasScope(BasePermission):
    """The view's ``scopes`` name one scope for each method; a method without one is refused."""

    def has_permission(self, request: Request, view: Any) -> bool:
        caller = require_caller(request)
        method = str(request.method)
        if method == "OPTIONS" or method not in view.allowed_methods:
            return True  # answered with the allowed methods, or with 405
        method = "GET" if method == "HEAD" else method
        scope = getattr(view, "scopes", {}).get(method)
        who = _lacking(caller)
        if caller.is_staff and method in view.staff_rights:
            lacking = [
                name for name in view.staff_rights[method] if not request.user.has_perm(name)
            ]
            if lacking:
                raise PermissionDenied(f"{who} the permission {', '.join(lacking)}.")
        elif scope != ANY and (scope is None or scope not in caller.scopes):
            raise PermissionDenied(f"{who} the scope {scope or 'for this'}.")
        if caller.is_bound and not view.bound_tokens:
            raise PermissionDenied("The token is bound to chats, and this concerns all of them.")
        return True


def require_scopes(caller: Caller, needed: Iterable[str], why: str) -> None:
    """Refuse a call whose content needs more scopes than its address and method.

    ``why``: a clause that says what needs them. Raises PermissionDenied.
    """
    missing = [scope for scope in needed if scope not in caller.scopes]
    if missing:
        noun = "scope" if len(missing) == 1 else "scopes"
        raise PermissionDenied(f"{_lacking(caller)} the {noun} {' and '.join(missing)}: {why}")


def require_reading(caller: Caller) -> None:
    """Refuse a token that may write but not read, where the answer shows what others stored.

    Call it for an object that is within reach: whether it exists is no secret of its content.
    Staff's rights are those of the admin. Raises PermissionDenied.
    """
    if not caller.is_staff:
        require_scopes(caller, [READ], "the answer holds what is stored.")


def _lacking(caller: Caller) -> str:
    return "Your account lacks" if caller.is_staff else "The token lacks"
