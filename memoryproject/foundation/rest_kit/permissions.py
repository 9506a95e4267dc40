"""Check the caller's scopes, and refuse everything that no scope allows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memoryproject.foundation.rest_kit.callers import Caller, caller_of
from memoryproject.foundation.rest_kit.scopes import ANY, READ


class HasScope(BasePermission):
    """The view's ``scopes`` name one scope for each method; a method without one is refused."""

    def has_permission(self, request: Request, view: Any) -> bool:
        caller = caller_of(request)
        if caller is None:
            return False
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
