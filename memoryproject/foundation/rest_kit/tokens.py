"""Create, find and revoke tokens."""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.rest_kit.models import SCOPES, ApiToken, OAuthClient

# People and scanners for leaked secrets recognise a secret by this prefix.
MARK = "mem_"
SHOWN = len(MARK) + 6
MAX_NAME_LENGTH = 100
ENDED_KEPT, UNUSED_KEPT = timedelta(days=30), timedelta(days=1)
USE_NOTED_EACH = timedelta(minutes=1)


class TokenError(ValueError):
    """The token can't be created with these values; the text states the reason."""


@dataclass(frozen=True)
class NewToken:
    """A token that was just created. ``secret`` is shown once and can't be retrieved again."""

    token: ApiToken
    secret: str


def token_create(
    *,
    name: str,
    scopes: Collection[str] = SCOPES,
    chat_ids: Collection[UUID] | None = None,
    expires_at: datetime | None = None,
    resource: str = "",
    actor: Actor,
) -> NewToken:
    """Create a token. Raises TokenError.

    ``chat_ids``: the chats that it is bound to; None: it isn't bound. ``resource``: the address at
    which alone it is valid.
    """
    _check(name, scopes, chat_ids, expires_at)
    secret = new_secret()
    with transaction.atomic():
        token = ApiToken.objects.create(
            name=name.strip(),
            prefix=secret[:SHOWN],
            digest=digest_of(secret),
            scopes=[scope for scope in SCOPES if scope in scopes],
            chat_ids=None if chat_ids is None else sorted(set(chat_ids)),
            expires_at=expires_at,
            resource=resource,
            created_by=actor.name or actor.kind,
        )
        _record("token.create", token, actor)
    return NewToken(token, secret)


def _check(
    name: str,
    scopes: Collection[str],
    chat_ids: Collection[UUID] | None,
    expires_at: datetime | None,
) -> None:
    if not name.strip() or len(name.strip()) > MAX_NAME_LENGTH or not name.isprintable():
        text = _("A token needs a name of 1 to %(most)s printable characters.")
        raise TokenError(text % {"most": MAX_NAME_LENGTH})
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        text = _("It needs a scope. Scopes are %(known)s.")
        if unknown:
            text = _("There is no scope %(unknown)s. Scopes are %(known)s.")
        names = {"unknown": ", ".join(unknown), "known": ", ".join(SCOPES)}
        raise TokenError(text % names)
    if chat_ids is not None and not chat_ids:
        raise TokenError(_("A bound token needs at least one chat."))
    if expires_at is not None and expires_at <= timezone.now():
        raise TokenError(_("A token can't expire in the past."))


def token_revoke(*, token_id: int, actor: Actor) -> bool:
    """Revoke a token immediately; return whether it was valid before."""
    with transaction.atomic():
        live = ApiToken.objects.filter(pk=token_id, revoked_at__isnull=True)
        if not live.update(revoked_at=timezone.now()):
            return False
        _record("token.revoke", ApiToken.objects.get(pk=token_id), actor)
    return True


def _record(action: str, token: ApiToken, actor: Actor) -> None:
    more: dict[str, Any] = {"oauth": True} if token.resource else {}
    audit_record(
        action,
        actor,
        "token",
        token.pk,
        scopes=list(token.scopes),
        bound=token.chat_ids is not None,
        **more,
    )


def granted_drop() -> int:
    """Delete ended grants of applications after a month, and clients without any after a day.

    The audit log has who consented. Return the number of rows.
    """
    now = timezone.now()
    ended = Q(revoked_at__lt=now - ENDED_KEPT) | Q(grant__ends_at__lt=now - ENDED_KEPT)
    deleted = ApiToken.objects.filter(ended, grant__isnull=False).delete()[0]
    unused = OAuthClient.objects.filter(oauthgrant=None, created_at__lt=now - UNUSED_KEPT)
    return deleted + unused.delete()[0]


def token_find(secret: str) -> ApiToken | None:
    """Return the token with this secret, even if it is expired or revoked."""
    return ApiToken.objects.filter(digest=digest_of(secret)).first()


def token_used(token: ApiToken, now: datetime) -> None:
    """Record the token's use, at most once a minute."""
    if token.last_used_at is not None and now - token.last_used_at < USE_NOTED_EACH:
        return
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lte=now - USE_NOTED_EACH)
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


def new_secret(kind: str = "") -> str:
    """Return a secret; ``kind``: in OAuth, what it is where it isn't a token."""
    return MARK + kind + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    """Return the secret's SHA-256. The secret has 256 random bits, so it can't be guessed."""
    return hashlib.sha256(secret.encode()).hexdigest()
