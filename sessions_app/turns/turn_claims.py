"""Claim turns, hold those of paused chats, and find turns that dead workers left.

A turn's state is updated here from the states of its parts.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, When
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from memoryproject.foundation.leases import RELEASED, Lease
from sessions_app.conversations import buttons, epochs, redact_derived, session_lifecycle
from sessions_app.limits.answer_limits import CHAT_NOT_BLOCKED, can_be_blocked
from sessions_app.models import Chat, ChatPause, OutboundPart, Turn
from sessions_app.models.chats import GODFATHER, Provider, addresses_now
from sessions_app.models.deliveries import PartState
from sessions_app.models.takeover import PauseCause
from sessions_app.models.turns import (
    APOLOGY_FOR,
    BY_RULE,
    WAITING_STATES,
    Outcome,
    TransitionError,
    TurnState,
    turn_move,
    turns_move,
)


def turn_update_state(*, turn: Turn, parts: Iterable[OutboundPart] | None = None) -> bool:
    """Bring the turn's state in line with its parts; return whether more is to be sent.

    A part that is being sent, or whose result is unknown yet, keeps the turn in ``sending``. A turn
    that ends loses its lease. ``parts``: all of the turn's, which are read if they aren't given.
    """
    if turn.state == TurnState.SENT:
        # It stays so, whatever is reported of its parts later.
        return False
    parts = list(turn.parts.all() if parts is None else parts)
    states = {part.state for part in parts}
    if PartState.FAILED in states:
        error = next(part.error for part in parts if part.state == PartState.FAILED)
        _finish(turn, TurnState.FAILED, error=turn.error or error)
    elif PartState.SENDING in states:
        return False
    elif PartState.UNCONFIRMED in states:
        _finish(turn, TurnState.UNCONFIRMED)
    elif PartState.WAITING in states:
        # An answer that counted as unconfirmed but went out continues with its other parts.
        begun = [TurnState.SENDING, TurnState.UNCONFIRMED]
        this_turn = Turn.objects.filter(pk=turn.pk, chat=turn.chat_id, state__in=begun)
        turns_move(this_turn, TurnState.REPLIED, finished_at=None)
        return True
    elif states == {PartState.SENT}:
        # In the terminal and the API the waiting caller reads it, and erases it then. What it reads
        # may be an apology, and no other turn tells of the failure.
        is_console = turn.provider == str(Provider.CONSOLE)
        is_apology = is_console and turn.outcome == Outcome.FAILED
        _finish(turn, TurnState.FAILED if is_apology else TurnState.SENT)
        if turn.session_id is None and not is_console:
            redact_derived.unstored_forget(turn)
    return False


def _finish(turn: Turn, state: str, **noted: Any) -> None:
    open_states = [TurnState.REPLIED, TurnState.SENDING, TurnState.UNCONFIRMED]
    this_turn = Turn.objects.filter(pk=turn.pk, chat=turn.chat_id, state__in=open_states)
    changes = {"finished_at": timezone.now(), **RELEASED, **noted}
    with transaction.atomic(savepoint=False):
        # Among writes that are sent together only the first condition is known: of a locked turn.
        if turn.state not in open_states or not turns_move(this_turn, state, **changes):
            return
        turn.lease_token = None
        if "error" in noted:
            turn.error = noted["error"]
            session_lifecycle.turn_failed(turn, stage=session_lifecycle.SENDING)


logger = logging.getLogger(__name__)

_BEFORE = Turn.objects.filter(session=OuterRef("session"), id__lt=OuterRef("id")).order_by("-id")
_SENDING = Turn.objects.filter(chat=OuterRef("chat"), state=TurnState.SENDING).order_by()
SEEN_BY_CHAT = {"current_addresses": addresses_now("chat"), "epochs": epochs.epochs_seen("chat_id")}
# Turns with all that a claim and an answer need of them and their chats. Made once: making it takes
# longer than reading a turn.
WHOLE_TURNS: QuerySet[Any] = Turn.objects.defer("message__terms").annotate(
    **SEEN_BY_CHAT,
    state_before=Subquery(_BEFORE.values("state")[:1]),
    is_sending=Exists(_SENDING.filter(lease_token__isnull=False)),
)
WHOLE_TURNS = WHOLE_TURNS.select_related("chat__access", "chat__pause", "session", "message")

BEGUN_FIRST = Case(When(state=TurnState.RUNNING, then=0), default=1)


@dataclass(frozen=True)
class TurnLease(Lease[Turn]):
    """The right to work on one turn. ``row`` is as it was read for the claim, and claimed."""

    @property
    def turn_id(self) -> int:
        return self.row.pk

    def held(self) -> QuerySet[Any]:
        """Return the row as Lease does, with its chat unless that is blocked."""
        return super().held().annotate(chat_not_blocked=CHAT_NOT_BLOCKED)

    def lock_with_session(self) -> Any:
        """Return the turn with its session, locked: session before turn, as all code locks.

        With what may have changed since the claim: the chat's addresses and the epochs.
        """
        rows = self.held().annotate(**SEEN_BY_CHAT)
        if self.row.session_id is None:
            return self.lock(rows)
        # The condition makes it an inner join: the null side of another can't be locked.
        rows = rows.filter(session__created_at__isnull=False).select_related("session")
        return self.lock(rows, of=("session", "self"))


def is_blocked(turn: Any) -> bool:
    """Return whether staff have blocked the chat of a turn, as its lease returned it."""
    is_owners = turn.user_role == GODFATHER
    return turn.chat_not_blocked is None and can_be_blocked(turn, is_owners=is_owners)


def turn_claim(*, chat_id: UUID, now: datetime | None = None) -> TurnLease | None:
    """Claim the chat's oldest waiting turn.

    Returns None where no turn waits, it isn't time yet, or another worker is at work in this chat.
    Where staff have paused the assistant, only stored answers and commands are claimed.
    """
    now = now or timezone.now()
    oldest = turns_waiting(chat_id).first()
    sending = Turn.objects.filter(chat_id=chat_id, state=TurnState.SENDING)
    if oldest is None or (oldest.is_sending and sending.held(now)):
        return None
    if (pause := getattr(oldest.chat, "pause", None)) and pause.holds(now):
        paused_turns_hold(chat_id, now)
        oldest = turns_waiting(chat_id).first()
    if oldest is None or oldest.is_held(now) or (oldest.not_before or now) > now:
        return None
    token = uuid.uuid4()
    unchanged = Turn.objects.filter(
        pk=oldest.pk, chat=chat_id, state=oldest.state, lease_token=oldest.lease_token
    )
    taken = {"attempts": oldest.attempts + 1, **Turn.lease_values(token, now)}
    try:
        if oldest.state == TurnState.PENDING:
            turn_move(oldest, TurnState.RUNNING, **taken)
        elif unchanged.update(**taken):
            oldest.attempts += 1
        else:
            return None
    except (IntegrityError, TransitionError):
        # Another worker was faster, or a merge has just moved the turn into a chat in which
        # another turn is being answered. The worker of that chat continues with this turn.
        return None
    return TurnLease(oldest, token)


def turns_waiting(chat_id: UUID) -> QuerySet[Any]:
    """Return the turns to answer, in order: first one that was begun, then the oldest.

    After a merge of two chats, an older turn may stand behind the one that was begun.
    """
    waiting = WHOLE_TURNS.filter(chat_id=chat_id, state__in=WAITING_STATES)
    return waiting.order_by(BEGUN_FIRST, "id")


def turns_ready(now: datetime) -> QuerySet[Turn]:
    """Return the turns of the chats that nobody is at work in, the oldest first.

    A chat whose next turn is to wait, or whose lease a living worker may still have, is left out.
    """
    of_chat = Turn.objects.filter(chat=OuterRef("chat"))
    leased = Q(lease_token__isnull=False, lease_until__gt=now)
    waits = of_chat.filter(leased | Q(not_before__gt=now), state__in=WAITING_STATES)
    is_sending = of_chat.filter(leased, state=TurnState.SENDING)
    ready = Turn.objects.filter(~Exists(waits), ~Exists(is_sending), state__in=WAITING_STATES)
    return ready.order_by("id")


def leases_of_dead_release(now: datetime) -> int:
    """Release the turns whose worker died on this machine; return how many.

    Those of another machine are free when their lease ends.
    """
    leased = Turn.objects.filter(state__in=WAITING_STATES, lease_token__isnull=False)
    rows = leased.only("lease_token", "lease_owner", "lease_until").abandoned(now)
    tokens = [turn.lease_token for turn in rows]
    return leased.filter(lease_token__in=tokens).update(**RELEASED) if tokens else 0


def turns_sweep(*, unconfirmed_after: timedelta, now: datetime | None = None) -> dict[str, int]:
    """Resolve the sends of dead workers, and release the turns that they had.

    It is safe to run at any time, also several times in parallel.

    Returns how many turns may be answered again (enqueued), and how many are unconfirmed now.
    """
    now = now or timezone.now()
    unconfirmed = sends_resolve(now=now, unconfirmed_after=unconfirmed_after)
    return {"enqueued": leases_of_dead_release(now), "unconfirmed": unconfirmed}


def sends_resolve(*, now: datetime, unconfirmed_after: timedelta) -> int:
    """Resolve the sends that have no worker; return how many turns are unconfirmed now.

    A part that was begun long ago counts as unconfirmed.
    """
    sending = Turn.objects.filter(state=TurnState.SENDING)
    abandoned = sending.only("turn_id", "lease_token", "lease_owner", "lease_until").abandoned(now)
    if not abandoned:
        return 0
    parts = OutboundPart.objects.filter(turn__in=abandoned)
    parts.filter(state=PartState.SENDING, started_at__lte=now - unconfirmed_after).update(
        state=PartState.UNCONFIRMED
    )
    tokens = [turn.lease_token for turn in abandoned if turn.lease_token]
    Turn.objects.filter(pk__in=[turn.pk for turn in abandoned], lease_token__in=tokens).update(
        lease_token=None
    )
    # The others wait for a status from the provider; nothing in them changes with each sweep.
    of_turn = OutboundPart.objects.filter(turn=OuterRef("pk"))
    waits = Exists(of_turn.filter(state=PartState.SENDING))
    failed = Exists(of_turn.filter(state=PartState.FAILED))
    decided = Turn.objects.filter(~waits | failed, pk__in=[turn.pk for turn in abandoned])
    return sum(_send_resolve(turn) for turn in decided.order_by("id"))


def _send_resolve(turn: Turn) -> bool:
    """Resolve one turn; return whether it is unconfirmed now."""
    turn_update_state(turn=turn)
    turn.refresh_from_db()
    if turn.state != TurnState.UNCONFIRMED:
        return False
    logger.warning("Turn %s: it is not known whether its answer went out.", turn.turn_id)
    return True


# Pause the assistant in a chat, and resume it. While a pause is in force the assistant answers no
# turn of the chat: each turn is *held*. Commands of a person are still executed: a request to
# forget something doesn't wait for staff. An answer that was stored before the pause still goes
# out.

NOT_ANSWERED = (TurnState.PENDING, TurnState.RUNNING, TurnState.DEFERRED)


@dataclass(frozen=True)
class Resumed:
    """The result of resuming: whether the chat was paused, and the turn that is answered now."""

    was_paused: bool
    answering: Turn | None = None


def chat_locked(chat_id: UUID) -> Chat:
    """Return the chat, locked as intake locks it, so that no message comes in meanwhile.

    Raises DoesNotExist.
    """
    return Chat.objects.select_for_update(no_key=True).get(pk=chat_id)


def pause_in_force(chat_id: UUID, now: datetime) -> ChatPause | None:
    """Return the pause that is in force now.

    A caller that decides by it must hold the lock of the chat's row, and ask only after that.
    """
    pauses = ChatPause.objects.filter(Q(until__isnull=True) | Q(until__gt=now), chat=chat_id)
    return pauses.first()


def chat_pause(
    *,
    chat_id: UUID,
    until: datetime | None,
    by: int | None,
    actor: Actor,
    now: datetime,
    cause: str = PauseCause.STAFF,
) -> ChatPause:
    """Pause the assistant until a time, or until it is resumed.

    A pause that is in force gets the new end and cause. ``by``: the staff member's id. Turns that
    wait for an answer are held, and also those that are being answered. Raises Chat.DoesNotExist.
    """
    with transaction.atomic():
        chat = chat_locked(chat_id)
        before = pause_in_force(chat.pk, now)
        pause, _ = ChatPause.objects.update_or_create(
            chat=chat,
            defaults={
                "since": before.since if before else now,
                "until": until,
                "paused_by_id": by,
                "cause": cause,
            },
        )
        held = _turns_hold(chat.pk)
        end = until.isoformat() if until else None
        audit_record("takeover.pause", actor, "chat", chat.pk, until=end, held=held, cause=cause)
    logger.info("The assistant is paused in chat %s.", chat_id)
    return pause


def chat_resume(
    *,
    chat_id: UUID,
    actor: Actor,
    now: datetime,
    enqueue: Callable[[UUID], None],
    max_age: timedelta,
    answer_last: bool = False,
) -> Resumed:
    """Resume the assistant; nothing is changed where it isn't paused.

    Messages that came in meanwhile stay unanswered. With ``answer_last`` the last of them is
    answered, unless staff have answered by hand since or it is older than ``max_age``. Raises
    Chat.DoesNotExist.
    """
    with transaction.atomic():
        chat = chat_locked(chat_id)
        if not ChatPause.objects.filter(chat=chat).delete()[0]:
            return Resumed(was_paused=False)
        since = now - max_age if answer_last else None
        turn = _go_on(chat_id, now, actor, enqueue, answers_since=since)
    logger.info("The assistant goes on in chat %s.", chat_id)
    return Resumed(was_paused=True, answering=turn)


def pauses_end(*, now: datetime, enqueue: Callable[[UUID], object], max_age: timedelta) -> int:
    """Delete the pauses that have expired; return how many.

    Where a person of the business had taken part, or was to, what the client wrote after them is
    answered now: the last message, unless it is older than ``max_age``.
    """
    ended = 0
    over = ChatPause.objects.filter(until__lte=now)
    for pause in over.only("chat_id", "cause"):
        with transaction.atomic():
            chat_id = pause.chat_id
            chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
            if chat is None or not over.filter(chat=chat).delete()[0]:
                continue
            since = now - max_age if pause.is_sliding else None
            _go_on(chat_id, now, SYSTEM, enqueue, answers_since=since, by="time")
            ended += 1
    return ended


def paused_turns_hold(chat_id: UUID, now: datetime) -> None:
    """Hold the waiting turns of the chat where the assistant is paused, whatever made them wait."""
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        # Once it is locked: the assistant may just have been resumed, and a turn put back.
        if chat is not None and pause_in_force(chat_id, now):
            _turns_hold(chat_id)


def longest_pause(pauses: Collection[ChatPause]) -> ChatPause:
    """Return the pause that ends last."""
    return max(pauses, key=lambda pause: (pause.until is None, pause.until or pause.since))


def last_held(chat_id: UUID, *, since: datetime) -> Turn | None:
    """Return the last message that came during a pause and has no answer."""
    turns = Turn.objects.filter(chat=chat_id).exclude(context__has_key=BY_RULE)
    turns = turns.select_related("message")
    turn = turns.filter(Q(by_hand=True) | Q(state=TurnState.HELD)).order_by("-id").first()
    if turn is None or turn.by_hand or turn.asked_at < since:
        return None
    later = turns.filter(id__gt=turn.pk, state__in=[*WAITING_STATES, TurnState.SENT])
    # What was answered since has taken it up; an apology is no answer.
    if later.exclude(context__has_key=APOLOGY_FOR).exists():
        return None
    # A sticker after a question asks nothing.
    while turn.context.get("kind") == "sticker":
        before = turns.filter(id__lt=turn.pk).order_by("-id").first()
        if before is None or before.state != TurnState.HELD or before.asked_at < since:
            break
        turn = before
    return turn if has_words(turn) else None


def has_words(turn: Turn) -> bool:
    """Return whether the message of the turn is still stored."""
    if turn.message is not None:
        return turn.message.revoked_at is None
    return turn.session_id is None and bool(turn.unstored_text or turn.context.get("media"))


def is_command(turn: Turn) -> bool:
    """Return whether the turn needs no model: a command, or a notice of ours answers it."""
    if "notice" in turn.context:
        return True
    return buttons.command_in_turn(turn) is not None


def turn_unhold(turn: Turn) -> None:
    """Let the assistant answer a held turn after all.

    Raises TransitionError.
    """
    turn_move(
        turn,
        TurnState.PENDING,
        attempts=0,
        error="",
        not_before=None,
        finished_at=None,
        lease_token=None,
    )


def _go_on(
    chat_id: UUID,
    now: datetime,
    actor: Actor,
    enqueue: Callable[[UUID], object],
    *,
    answers_since: datetime | None,
    **details: Any,
) -> Turn | None:
    """End what a pause has held; return the last of it if it is answered now.

    ``answers_since``: how old that may be; None: nothing is answered.
    """
    turn = last_held(chat_id, since=answers_since) if answers_since else None
    try:
        if turn is not None:
            turn_unhold(turn)
            transaction.on_commit(lambda: enqueue(chat_id), robust=True)
    except TransitionError:
        # Its message is being revoked at this moment.
        turn = None
    held = Turn.objects.filter(chat=chat_id, state=TurnState.HELD, finished_at__isnull=True)
    for each in held.filter(session__isnull=True):
        redact_derived.unstored_forget(each)
    held.update(finished_at=now)
    answers_last = turn is not None
    audit_record("takeover.resume", actor, "chat", chat_id, **details, answers_last=answers_last)
    return turn


def _turns_hold(chat_id: UUID) -> int:
    """Hold the turns that aren't answered yet.

    A worker that answers one loses its lease and stores nothing. A worker that claims a turn at
    this moment has either committed before, or finds the turn held.
    """
    waiting: QuerySet[Turn] = Turn.objects.filter(chat=chat_id, state__in=NOT_ANSWERED)
    held = 0
    for turn in waiting.select_related("message", "chat").order_by("id"):
        if not is_command(turn):
            held += turns_move(waiting.filter(pk=turn.pk), TurnState.HELD, **RELEASED)
    return held
