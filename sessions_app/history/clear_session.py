"""Empty a session."""

import logging
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from sessions_app import models
from sessions_app.conversations import session_lifecycle
from sessions_app.models.deliveries import PartState
from sessions_app.models.sessions import SessionStatus
from sessions_app.models.turns import ANSWERABLE_STATES, WAITING_STATES, TurnState, turns_move

# Expire idle sessions and archive old ones, in batches.

BATCH = 500
SECOND = timedelta(seconds=1)


def sessions_due(*, now: datetime, timeout: timedelta) -> QuerySet[models.ChatSession]:
    """Return the active sessions without an open turn that have been idle for ``timeout``.

    The idle time is exact to the second (EDGE-004). Sessions with an open turn don't expire
    (EDGE-009).
    """
    # trunc(last_active) + timeout <= now, written so that an index on last_active is used.
    idle_since = (now - timeout).replace(microsecond=0) + SECOND
    open_turns = models.Turn.objects.filter(
        session=OuterRef("pk"), state__in=[*WAITING_STATES, TurnState.DEFERRED, TurnState.SENDING]
    )
    due = models.ChatSession.objects.filter(status=SessionStatus.ACTIVE, last_active__lt=idle_since)
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
            session_lifecycle.sessions_end(
                ended=[
                    (session, session_lifecycle.expires_at(session, timeout)) for session in found
                ]
            )
        expired += len(found)
        if len(found) < batch:
            return expired
        after = found[-1].last_active


def sessions_overdue(*, now: datetime, older_than: timedelta) -> QuerySet[models.ChatSession]:
    """Return the sessions that expired long enough ago to be archived."""
    return models.ChatSession.objects.filter(
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
            models.ChatSession.objects.filter(pk__in=keys).update(status=SessionStatus.ARCHIVED)
        archived += len(keys)
        if len(keys) < batch:
            return archived


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cleared:
    """The numbers of deleted messages and summaries."""

    messages: int
    summaries: int


def session_clear(*, session: models.ChatSession, now: datetime, actor: Actor = SYSTEM) -> Cleared:
    """Empty a session (see session_empty) and record it in the audit log."""
    cleared = session_empty(session=session, now=now)
    audit_record(
        "session.clear", actor, "session", session.pk, **asdict(cleared), chat_id=session.chat_id
    )
    return cleared


def session_empty(*, session: models.ChatSession, now: datetime) -> Cleared:
    """Delete a session's messages, summaries, vectors and card, and redact their other copies.

    The copies are in replays, raw deliveries and parts of answers. Turns that wait for their answer
    are cancelled.

    ``session`` is locked by the caller's transaction and saved. Order numbers continue: none is
    given twice.
    """
    open_turns = models.Turn.objects.filter(session=session, state__in=ANSWERABLE_STATES)
    turns_move(open_turns, TurnState.CANCELLED, finished_at=now, lease_token=None)
    _empty_replays(session)
    models.OutboundPart.objects.filter(turn__session=session).exclude(
        state=PartState.SENDING
    ).update(content="")
    models.InboundDelivery.objects.filter(message__session=session).update(raw=None, change=None)
    counted = session.messages.aggregate(messages=Count("pk"))
    summaries = session.summarizations.count()
    models.Note.objects.filter(message__session=session).delete()
    session.messages.all().delete()
    session_lifecycle.activity_recount(chat_ids=[session.chat_id])
    models.SummaryWork.objects.filter(session=session).delete()
    # A batch file that is still in its folder no longer counts as stored.
    models.TranscriptBatch.objects.filter(session=session, cleaned_at=None).update(cleaned_at=now)
    session_lifecycle.cards_outdate(session_ids=[session.pk])
    session.total_tokens = 0
    session.window_start = session.message_counter + 1
    session.summarized_until = session.message_counter
    session.save(update_fields=["total_tokens", "window_start", "summarized_until"])
    cleared = session.session_id
    # Only once it is certain, because a preview of forgetting is rolled back.
    transaction.on_commit(lambda: logger.info("Session %s was cleared.", cleared))
    return Cleared(messages=counted["messages"], summaries=summaries)


def _empty_replays(session: models.ChatSession) -> None:
    """Empty the session's own replays, and the chat's other replays that recalled from it.

    Their trials are deleted.
    """
    nothing_kept: dict[str, Any] = {"prompt": [], "recalled": [], "left_out": {}}
    models.TurnReplay.objects.filter(turn__session=session).update(**nothing_kept)
    recalled_here = [{"session_id": str(session.pk)}]
    others = models.TurnReplay.objects.filter(
        turn__chat_id=session.chat_id, recalled__contains=recalled_here
    )
    models.AnswerTrial.objects.filter(
        Q(turn__session=session)
        | Q(turn__in=others.values("turn"))
        | Q(recalled__contains=recalled_here),
        turn__chat_id=session.chat_id,
    ).delete()
    others.update(**nothing_kept)
