"""The caller of a request, and the chats that the caller may access."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from rest_framework.request import Request

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.rest_kit.models import ApiToken
from memoryproject.foundation.rest_kit.scopes import STAFF_PERMISSIONS


@dataclass(frozen=True)
class Caller:
    """A token or a staff member.

    ``key`` identifies the caller in tables. ``chat_ids``: the chats that a token is bound to; None:
    the caller may access all chats. ``expires_at``: when a token ends, if it does.
    """

    key: str
    actor: Actor
    scopes: frozenset[str]
    chat_ids: frozenset[UUID] | None = None
    expires_at: datetime | None = None

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
    )


def caller_of_staff(user: Any) -> Caller:
    """Return the caller for a staff user. A superuser has every scope."""
    scopes = {scope for scope, names in STAFF_PERMISSIONS.items() if user.has_perms(names)}
    return Caller(
        key=f"staff:{user.pk}",
        actor=Actor("staff", user.get_username()),
        scopes=frozenset(scopes),
    )


def caller_of(request: Request) -> Caller | None:
    """Return the caller of this request, or None if nobody is authenticated."""
    found = request.auth
    return found if isinstance(found, Caller) else None
