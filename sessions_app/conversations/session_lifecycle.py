"""Start, end and expire sessions, and keep the time of a chat's last message."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.dispatch import Signal
from django.utils import timezone

from cards_app.models import MemoryCard
from cards_app.services import cards_delete
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, Event, audit_record_many
from memoryproject.foundation.outgoing_webhooks.deliveries import HookEvent, hooks_raise
from memoryproject.foundation.outgoing_webhooks.models import EventType
from memoryproject.foundation.process.jobs import enqueue
from memoryproject.foundation.staff_notices import Kind, notify
from memoryproject.foundation.text.uuids import iso_utc
from sessions_app import models, signals
from sessions_app.models.chats import addresses_now

# Queue the session cards that are due.


# A worker was notified when the card became due; after this delay the sweep takes what is left.
TIME_FOR_WORKERS = timedelta(seconds=30)
AT_ONCE = 50
MAX_SWEPT = 5_000
# A card that fails is retried after a minute, then after twice as long each time.
FIRST_WAIT = timedelta(minutes=1)
MAX_WAIT = timedelta(hours=12)


def cards_request(*, session_ids: Collection[UUID]) -> None:
    """Record that the cards of these sessions are due.

    Call it in the transaction that ends or changes the sessions, with their rows locked.
    """
    if not session_ids:
        return
    now = timezone.now()
    known = models.CardWork.objects.filter(pk__in=list(session_ids))
    if known.update(token=uuid4(), due_at=now, attempts=0) < len(set(session_ids)):
        fresh = [models.CardWork(session_id=key, due_at=now) for key in dict.fromkeys(session_ids)]
        models.CardWork.objects.bulk_create(fresh, ignore_conflicts=True)
    transaction.on_commit(partial(_send, signals.cards_due, session_ids=list(session_ids)))


def cards_outdate(*, session_ids: Collection[UUID]) -> int:
    """Delete the cards of these sessions at once and queue new ones; return how many were deleted.

    Call it after messages of the sessions were changed or deleted. An active session gets a new
    card only if it had one.

    Call it in the transaction of the change, with the sessions' rows locked.
    """
    keys = list(session_ids)
    outcomes_outdate(session_ids=keys)
    has_one = Q(Exists(MemoryCard.objects.filter(pk=OuterRef("pk"))))
    is_made = Q(card_work__isnull=False)
    ended = ~Q(status=models.SessionStatus.ACTIVE)
    due = models.ChatSession.objects.filter(ended | has_one | is_made, pk__in=keys)
    cards_request(session_ids=list(due.order_by("pk").values_list("pk", flat=True)))
    return cards_delete(session_ids=keys)


def outcomes_outdate(*, session_ids: Collection[UUID]) -> None:
    """Let these sessions be judged again; evidence may be in messages that changed or are gone."""
    keys = list(session_ids)
    # Some evidence of a session is in later ones of its chat.
    later = Q()
    for kind in (models.Evidence.SAID_YES, models.Evidence.SAID_NO, models.Evidence.RETURNED):
        later |= Q(evidence__contains=[{"kind": kind}])
    chats = models.ChatSession.objects.filter(pk__in=keys).values("chat")
    of_sessions = Q(pk__in=keys) | Q(later, session__chat__in=chats)
    models.SessionOutcome.objects.filter(of_sessions).update(rules=0, evidence=[])


def cards_sweep(*, enqueue: Callable[[Sequence[UUID]], None], now: datetime | None = None) -> int:
    """Enqueue due cards that no worker made, and outdated cards of active sessions.

    Returns how many. Several processes can run it at the same time.
    """
    before = (now or timezone.now()) - TIME_FOR_WORKERS
    left = models.CardWork.objects.filter(due_at__lt=before).order_by("due_at")
    keys = [*left.values_list("pk", flat=True)[:MAX_SWEPT], *_grown()]
    for start in range(0, len(keys), AT_ONCE):
        enqueue(keys[start : start + AT_ONCE])
    return len(keys)


def card_put_off(*, session_id: UUID) -> None:
    """Postpone a card that failed, so that it doesn't delay the others."""
    with transaction.atomic():
        work = models.CardWork.objects.select_for_update(no_key=True).filter(pk=session_id).first()
        if work is None:
            return
        wait = min(FIRST_WAIT * 2 ** min(work.attempts, 20), MAX_WAIT)
        work.attempts += 1
        work.due_at = timezone.now() + wait
        work.save(update_fields=["attempts", "due_at"])


def _grown() -> list[UUID]:
    """Return the active sessions that got messages after their card was made."""
    older = MemoryCard.objects.filter(pk=OuterRef("pk"), last_order__lt=OuterRef("message_counter"))
    active = models.ChatSession.objects.filter(
        status=models.SessionStatus.ACTIVE, message_counter__gt=0
    )
    grown = active.filter(Exists(older), card_work__isnull=True)
    return list(grown.values_list("pk", flat=True)[:MAX_SWEPT])


def _send(signal: Signal, **about: object) -> None:
    """Send a signal after the commit. The sweep finds what a receiver fails to do."""
    for receiver, result in signal.send_robust(sender=models.ChatSession, **about):
        if isinstance(result, Exception):
            logger.error("%r failed for %s.", receiver, about, exc_info=result)


ACTIVITY, CHATS = models.ChatActivity._meta.db_table, models.Chat._meta.db_table

MESSAGES = models.Message._meta.db_table

# Of two concurrent writers the later time stays, in whatever order they commit.
SAID = f"""
INSERT INTO {ACTIVITY} AS kept (chat_id, last_at) VALUES (%(chat_id)s, %(at)s)
ON CONFLICT (chat_id) DO UPDATE SET last_at = excluded.last_at WHERE kept.last_at < excluded.last_at
"""  # noqa: S608 constants only

# Order by time: of two concurrent messages the later one may have waited less and have the lower
# number.
RECOUNT = f"""
INSERT INTO {ACTIVITY} (chat_id, last_at)
SELECT chat.id, coalesce(said.received_at, chat.created_at) FROM {CHATS} AS chat
LEFT JOIN LATERAL (
    SELECT received_at FROM {MESSAGES} AS own
    WHERE own.chat_id = chat.id AND own.role <> %s ORDER BY received_at DESC LIMIT 1
) AS said ON true
WHERE chat.id = ANY(%s)
ON CONFLICT (chat_id) DO UPDATE SET last_at = excluded.last_at
"""  # noqa: S608 constants only


def activity_record(*, chat_id: UUID, at: datetime) -> None:
    """Record that something was said in the chat, or that the chat was created."""
    with connection.cursor() as cursor:
        cursor.execute(SAID, {"chat_id": chat_id, "at": at})


def activity_recount(*, chat_ids: Collection[UUID]) -> None:
    """Compute the activity again from the stored messages.

    Call it after messages were deleted, moved here from another chat, or imported from old
    files.
    """
    wanted = sorted(set(chat_ids))
    # Lock before the read, so that no concurrent message is missed.
    rows = models.ChatActivity.objects.select_for_update().filter(chat__in=wanted).order_by("chat")
    list(rows.values_list("chat", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(RECOUNT, [models.Role.SUMMARY, wanted])


logger = logging.getLogger(__name__)

IN_PROGRESS = (*models.WAITING_STATES, models.TurnState.SENDING)


def session_open(
    *, chat: models.Chat, now: datetime, timeout: timedelta, actor: Actor = SYSTEM
) -> models.ChatSession:
    """Return the chat's active session, locked until the transaction ends.

    Opens a new session if there is none or if it has been idle for ``timeout`` (to the second,
    EDGE-004). A session in which a worker is answering now is still in use (EDGE-009). The
    caller holds the lock of the chat's row, so that two openers can't race.
    """
    active = models.ChatSession.objects.select_for_update(no_key=True)
    # A chat has one at most.
    for session in active.filter(chat=chat, status=models.SessionStatus.ACTIVE):
        falls_due = expires_at(session, timeout)
        if falls_due > now or _is_answering(session):
            return session
        session_end(session=session, at=falls_due)
    return session_start(chat=chat, now=now, actor=actor)


def expires_at(session: models.ChatSession, timeout: timedelta) -> datetime:
    """Return when the session expires if nothing more is said; whole seconds."""
    return session.last_active.replace(microsecond=0) + timeout


def _is_answering(session: models.ChatSession) -> bool:
    turns = models.Turn.objects.filter(session=session, state__in=IN_PROGRESS)
    # A lease runs in real time, whatever ``now`` the caller passes.
    return bool(turns.held(timezone.now()))


def session_start(*, chat: models.Chat, now: datetime, actor: Actor = SYSTEM) -> models.ChatSession:
    """Create the chat's active session. Raises IntegrityError if it has one already."""
    session = models.ChatSession.objects.create(chat=chat, created_at=now, last_active=now)
    logger.info("Session %s of chat %s was created.", session.session_id, chat.pk)
    sessions_record(action="session.create", sessions=[session], actor=actor)
    return session


def session_end(*, session: models.ChatSession, at: datetime, actor: Actor = SYSTEM) -> None:
    """Expire a session as of ``at``; its messages stay.

    ``session_expired`` is sent when the transaction is committed.
    """
    sessions_end(ended=[(session, at)], actor=actor)


def damaged_session_end(*, chat: models.Chat, at: datetime) -> bool:
    """Expire the chat's active session if its counter is behind its messages.

    No message can be added to such a session. Returns whether there was one (ERR-SESSION-001).
    """
    with transaction.atomic():
        active = models.ChatSession.objects.select_for_update(no_key=True)
        session = active.filter(chat=chat, status=models.SessionStatus.ACTIVE).first()
        if session is None:
            return False
        highest = session.messages.aggregate(highest=Max("order_num"))["highest"] or 0
        if highest <= session.message_counter:
            return False
        logger.error(
            "Session %s is damaged: it counts %s messages and has one with the number %s. A new "
            "session begins; manage.py session_rebuild repairs this one.",
            session.session_id,
            session.message_counter,
            highest,
        )
        session_end(session=session, at=at)
    return True


def sessions_end(
    *, ended: Sequence[tuple[models.ChatSession, datetime]], actor: Actor = SYSTEM
) -> None:
    """Expire many sessions at once and request their cards.

    Sessions end only in this function.
    """
    for session, at in ended:
        session.status = models.SessionStatus.EXPIRED
        session.expired_at = at
        session.save(update_fields=["status", "expired_at"])
        logger.info("Session %s of chat %s expired.", session.session_id, session.chat_id)
        transaction.on_commit(partial(_send, signals.session_expired, session_id=session.pk))
    cards_request(session_ids=[session.pk for session, _ in ended])
    hooks_raise(
        [
            HookEvent(
                EventType.SESSION_EXPIRED,
                session.pk,
                {"session_id": str(session.pk), "expired_at": iso_utc(at)},
                session.chat_id,
            )
            for session, at in ended
        ]
    )
    sessions_record(action="session.expire", sessions=[one for one, _ in ended], actor=actor)


def sessions_record(*, action: str, sessions: Sequence[models.ChatSession], actor: Actor) -> None:
    """Record the change of sessions in the audit log (NFR-SEC-005)."""
    audit_record_many(
        events=[
            Event(action, actor, "session", session.pk, chat_id=session.chat_id)
            for session in sessions
        ]
    )


# Send conversation events to integrators: ids and times, never message texts.


ANSWERING, SENDING = "answering", "sending"


def turn_failed(turn: models.Turn, *, stage: str) -> None:
    """Report that a turn failed for good, in ``answering`` or ``sending``.

    Call it in the transaction that records the failure. Staff read the error in the admin; the
    event names its code alone, because an error may quote a message.
    """
    failed = {"stage": stage, "outcome": str(models.Outcome.FAILED), "error_code": turn.error_code}
    _raise_of(EventType.TURN_FAILED, turn, failed)
    notify(Kind.FAILED, [(turn.turn_id, turn.chat_id)])


def answer_stored(turn: models.Turn) -> None:
    """Report a stored answer: by a model, from memory alone, or an apology.

    Call it in the transaction that stores the answer.
    """
    kinds: dict[str, str] = {
        models.Outcome.ANSWERED: EventType.TURN_ANSWERED,
        models.Outcome.FROM_MEMORY: EventType.TURN_DEGRADED,
    }
    if turn.outcome == models.Outcome.FAILED:
        turn_failed(turn, stage=ANSWERING)
    elif turn.outcome in kinds:
        answer = {"outcome": str(turn.outcome), "error_code": turn.error_code}
        _raise_of(kinds[turn.outcome], turn, {"reply_message_id": _text(turn.reply_id), **answer})


def message_received(turn: models.Turn) -> None:
    """Report a person's message, whose turn this is. Call it in the transaction that stores it."""
    _raise_of(EventType.MESSAGE_RECEIVED, turn, {"kind": turn.context.get("kind", "text")})


# Whether rules of staff may act on what happens in any chat.
RULES_ACT = Exists(models.Rule.objects.filter(is_on=True)) | Exists(
    models.AssistantProfile.objects.filter(hours__away_text__gt="")
)


def rules_look(chat_id: UUID) -> None:
    """Have a worker look whether staff's rules act on what happened in the chat.

    The sweep of each minute looks, too.
    """
    if models.Chat.objects.filter(RULES_ACT, pk=chat_id).exists():
        enqueue_rules(chat_id)


def enqueue_rules(chat_id: UUID) -> None:
    enqueue("sessions_app.tasks.run_rules", str(chat_id), task_name=f"rules {chat_id}")


def _raise_of(event_type: str, turn: models.Turn, more: Mapping[str, Any]) -> None:
    ids = {
        "turn_id": str(turn.turn_id),
        "session_id": _text(turn.session_id),
        "message_id": _text(turn.message_id),
    }
    hooks_raise([HookEvent(event_type, turn.turn_id, {**ids, **more}, turn.chat_id)])


def _text(key: UUID | None) -> str | None:
    return None if key is None else str(key)


# Read and lock a session with its chat and the addresses that decide its role, in one query.


@dataclass(frozen=True)
class SessionInChat:
    """A session with its chat; ``addresses``: the chat's, at present."""

    session: models.ChatSession
    addresses: Sequence[str]


def session_read(
    session_id: UUID, *, chat_ids: Collection[UUID] | None = None
) -> SessionInChat | None:
    """Return the session; None if there is none in these chats (None: in any chat)."""
    return _first(_sessions(session_id, chat_ids))


def session_lock(
    session_id: UUID, *, chat_ids: Collection[UUID] | None = None
) -> SessionInChat | None:
    """Return the same as ``session_read``; the session is locked until the transaction ends."""
    locked = _sessions(session_id, chat_ids).select_for_update(no_key=True, of=("self",))
    # Where chats were merged while this waited for the lock, the row no longer fits the chat that
    # was joined to it: the second read finds both.
    return _first(locked) or _first(locked)


def _sessions(session_id: UUID, chat_ids: Collection[UUID] | None) -> QuerySet[Any]:
    sessions = sessions_in_chats().filter(pk=session_id)
    return sessions if chat_ids is None else sessions.filter(chat__in=chat_ids)


def sessions_in_chats() -> QuerySet[Any]:
    """Return the sessions with their chats and the chats' current addresses."""
    sessions = models.ChatSession.objects.select_related("chat")
    return sessions.annotate(current_addresses=addresses_now("chat"))


def _first(sessions: QuerySet[Any]) -> SessionInChat | None:
    session = sessions.first()
    return None if session is None else SessionInChat(session, session.current_addresses)
