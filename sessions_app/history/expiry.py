"""Expire idle sessions and archive old ones, in batches."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from sessions_app.conversations.facade import expires_at, sessions_end
from sessions_app.models import ChatSession, Turn
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import WAITING_STATES, TurnState

logger = logging.getLogger(__name__)

BATCH = 500
SECOND = timedelta(seconds=1)


def sessions_due(*, now: datetime, timeout: timedelta) -> QuerySet[ChatSession]:
    """Return the active sessions without an open turn that have been idle for ``timeout``.

    The idle time is exact to the second (EDGE-004). Sessions with an open turn don't expire
    (EDGE-009).
    """
    # trunc(last_active) + timeout <= now, written so that an index on last_active is used.
    idle_since = (now - timeout).replace(microsecond=0) + SECOND
    open_turns = Turn.objects.filter(
        session=OuterRef("pk"), state__in=[*WAITING_STATES, TurnState.DEFERRED, TurnState.SENDING]
    )
    due = ChatSession.objects.filter(status=SessionStatus.ACTIVE, last_active__lt=idle_since)
    return due.filter(~Exists(open_turns)).order_by("last_active")


def sessions_expire(*, now: datetime, timeout: timedelta, batch: int = BATCH) -> int:
    """Expire every session that is due, however long ago; return how many.

    Each batch is a transaction of its own. Sessions that another process has locked are skipped, so
    that two processes at once expire each session once.
    """
    expired = 0
    after: datetime | None = None
    while True:
        with transaction.atomic():
            due = sessions_due(now=now, timeout=timeout).select_related("chat")
            if after is not None:
                due = due.filter(last_active__gte=after)
            found = list(due.select_for_update(of=("self",), skip_locked=True, no_key=True)[:batch])
            sessions_end(ended=[(session, expires_at(session, timeout)) for session in found])
        expired += len(found)
        if len(found) < batch:
            return expired
        after = found[-1].last_active


def sessions_overdue(*, now: datetime, older_than: timedelta) -> QuerySet[ChatSession]:
    """Return the sessions that expired long enough ago to be archived."""
    return ChatSession.objects.filter(
        status=SessionStatus.EXPIRED, expired_at__lte=now - older_than
    ).order_by("expired_at")


def sessions_archive(*, now: datetime, older_than: timedelta, batch: int = BATCH) -> int:
    """Archive every session that expired ``older_than`` ago; return how many.

    An archived session is read-only and left out of default lists.
    """
    archived = 0
    while True:
        with transaction.atomic():
            old = sessions_overdue(now=now, older_than=older_than).only("pk")
            found = old.select_for_update(skip_locked=True, no_key=True)[:batch]
            keys = [session.pk for session in found]
            ChatSession.objects.filter(pk__in=keys).update(status=SessionStatus.ARCHIVED)
        archived += len(keys)
        if len(keys) < batch:
            return archived
