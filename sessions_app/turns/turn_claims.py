"""Claim turns, update their state from their parts, and find turns that dead workers left."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, When
from django.utils import timezone

from memoryproject.foundation.leases import RELEASED, Lease
from sessions_app.conversations.facade import SENDING, turn_failed, unstored_forget
from sessions_app.models import OutboundPart, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.deliveries import PartState
from sessions_app.models.turn_states import turn_move_where, turns_move
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.turns.pauses import paused_turns_hold, pauses_in_force


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
        this_turn = Turn.objects.filter(pk=turn.pk, state__in=begun)
        turns_move(this_turn, TurnState.REPLIED, finished_at=None)
        return True
    elif states == {PartState.SENT}:
        _finish(turn, TurnState.SENT)
        # In the terminal and the API the waiting caller reads it, and erases it then.
        if turn.session_id is None and turn.provider != str(Provider.CONSOLE):
            unstored_forget(turn)
    return False


def _finish(turn: Turn, state: str, **noted: Any) -> None:
    open_states = [TurnState.REPLIED, TurnState.SENDING, TurnState.UNCONFIRMED]
    changes = {"finished_at": timezone.now(), **RELEASED, **noted}
    with transaction.atomic(savepoint=False):
        if not turn_move_where({"pk": turn.pk}, state, among=open_states, **changes):
            return
        turn.lease_token = None
        if state == TurnState.FAILED:
            turn.error = noted["error"]
            turn_failed(turn, stage=SENDING)


logger = logging.getLogger(__name__)

BEGUN_FIRST = Case(When(state=TurnState.RUNNING, then=0), default=1)


@dataclass(frozen=True)
class TurnLease(Lease[Turn]):
    """The right to work on one turn."""

    @property
    def turn_id(self) -> int:
        return self.row.pk


def turn_claim(*, chat_id: UUID, now: datetime | None = None) -> TurnLease | None:
    """Claim the chat's oldest waiting turn.

    Returns None where no turn waits, it isn't time yet, or another worker is at work in this chat.
    Where staff have paused the assistant, only stored answers and commands are claimed.
    """
    now = now or timezone.now()
    oldest: Any = _oldest(chat_id, now)
    sending = Turn.objects.filter(chat_id=chat_id, state=TurnState.SENDING)
    if oldest is None or (oldest.is_sending and sending.held(now)):
        return None
    if oldest.is_paused:
        paused_turns_hold(chat_id, now)
        oldest = _oldest(chat_id, now)
    if oldest is None or oldest.is_held(now):
        return None
    if oldest.not_before and oldest.not_before > now:
        return None
    token = uuid.uuid4()
    unchanged = {"pk": oldest.pk, "state": oldest.state, "lease_token": oldest.lease_token}
    taken = {"attempts": F("attempts") + 1, **Turn.lease_values(token, now)}
    try:
        if oldest.state == TurnState.PENDING:
            claimed = turn_move_where(unchanged, TurnState.RUNNING, **taken)
        else:
            claimed = bool(Turn.objects.filter(**unchanged).update(**taken))
    except IntegrityError:
        # A merge has just moved the turn into a chat in which another turn is being answered. The
        # worker of that chat continues with this turn.
        return None
    return TurnLease(oldest, token) if claimed else None


def _oldest(chat_id: UUID, now: datetime) -> Turn | None:
    """Return the turn to answer next, and whether an answer is being sent or staff have paused.

    Nearly always neither is so.
    """
    sending = Turn.objects.filter(chat_id=chat_id, state=TurnState.SENDING)
    leased = sending.filter(lease_token__isnull=False, lease_until__gt=now)
    waiting = turns_waiting(chat_id).annotate(
        is_sending=Exists(leased), is_paused=Exists(pauses_in_force(chat_id, now))
    )
    return waiting.first()


def turns_waiting(chat_id: UUID) -> QuerySet[Turn]:
    """Return the turns to answer, in order: first one that was begun, then the oldest.

    After a merge of two chats, an older turn may stand behind the one that was begun.
    """
    waiting = Turn.objects.filter(chat_id=chat_id, state__in=WAITING_STATES)
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
