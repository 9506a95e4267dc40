"""Who answers a turn: claims by conditional update, leases that end, and the sweep of what
dead workers left."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from memoryproject.lib.liveness import owner_is_gone, this_process
from sessions_app.models import OutboundPart, Turn
from sessions_app.models.deliveries import PartState
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.services.finish import turn_settle
from sessions_app.services.pauses import paused_turns_hold
from sessions_app.services.turn_states import turns_move

logger = logging.getLogger(__name__)

# Longer than any single step between two renewals: a try of the chat model or of a send.
LEASE = timedelta(minutes=3)


class LeaseLostError(Exception):
    """Another worker has the turn now, or it was cancelled: nothing more may be written."""


@dataclass(frozen=True)
class Lease:
    """The right to work on one turn."""

    turn_id: int
    token: UUID

    def renew(self) -> None:
        """Hold on for another while. Raises LeaseLostError."""
        held = Turn.objects.filter(pk=self.turn_id, lease_token=self.token)
        if not held.update(lease_until=timezone.now() + LEASE):
            raise LeaseLostError(f"turn {self.turn_id} is no longer ours")

    def turn(self) -> Turn:
        """The turn, locked until the transaction ends. Raises LeaseLostError."""
        # Without a join to the chat: a merge that moves the turn to another chat meanwhile
        # would make the joined row vanish, as if the lease were lost.
        held = Turn.objects.select_for_update(no_key=True)
        turn = held.filter(pk=self.turn_id, lease_token=self.token).first()
        if turn is None:
            raise LeaseLostError(f"turn {self.turn_id} is no longer ours")
        return turn

    def release(self) -> None:
        Turn.objects.filter(pk=self.turn_id, lease_token=self.token).update(
            lease_token=None, lease_owner="", lease_until=None
        )


def turn_claim(*, chat_id: UUID, now: datetime | None = None) -> Lease | None:
    """Take the chat's oldest waiting turn, or None: none waits, it isn't time yet, or
    somebody is at work in this chat. Where staff have paused the assistant, only what is to be
    sent and commands are taken."""
    now = now or timezone.now()
    sending = Turn.objects.filter(chat_id=chat_id, state=TurnState.SENDING)
    if any(is_held(turn, now) for turn in sending.filter(lease_token__isnull=False)):
        return None
    paused_turns_hold(chat_id, now)
    oldest = turn_next(chat_id)
    if oldest is None or is_held(oldest, now):
        return None
    if oldest.not_before and oldest.not_before > now:
        return None
    lease = Lease(turn_id=oldest.pk, token=uuid.uuid4())
    unchanged = Turn.objects.filter(
        pk=oldest.pk, state=oldest.state, lease_token=oldest.lease_token
    )
    taken: dict[str, Any] = {
        "attempts": F("attempts") + 1,
        "lease_token": lease.token,
        "lease_owner": this_process(),
        "lease_until": now + LEASE,
    }
    try:
        with transaction.atomic():
            if oldest.state == TurnState.PENDING:
                claimed = turns_move(unchanged, TurnState.RUNNING, **taken)
            else:
                claimed = unchanged.update(**taken)
    except IntegrityError:
        # A merge has just brought the turn into a chat in which another one is being answered:
        # whoever does that goes on with this one.
        return None
    return lease if claimed else None


def turn_next(chat_id: UUID) -> Turn | None:
    """The turn that is answered next: one that was begun, else the oldest. (Where two chats
    were merged, an older turn may have come in behind the one that was begun.)"""
    waiting = Turn.objects.filter(chat_id=chat_id, state__in=WAITING_STATES)
    begun = waiting.filter(state=TurnState.RUNNING)
    return begun.first() or waiting.order_by("id").first()


def is_held(turn: Turn, now: datetime) -> bool:
    """Whether a living worker has the turn."""
    if turn.lease_token is None or turn.lease_until is None or turn.lease_until <= now:
        return False
    return not owner_is_gone(turn.lease_owner)


def turns_sweep(
    *,
    enqueue: Callable[[UUID], None],
    unconfirmed_after: timedelta,
    now: datetime | None = None,
) -> dict[str, int]:
    """Take up what was left lying: sends that a dead worker began, and chats whose oldest
    turn waits with nobody at work. Safe to run at any time, by several at once.

    Returns how many chats were enqueued and how many turns are unconfirmed now.
    """
    now = now or timezone.now()
    unconfirmed = 0
    for turn in Turn.objects.filter(state=TurnState.SENDING).order_by("id").iterator():
        if not is_held(turn, now):
            unconfirmed += _sending_settle(turn, now, unconfirmed_after)
    waiting = Turn.objects.filter(state__in=WAITING_STATES).filter(
        Q(not_before__isnull=True) | Q(not_before__lte=now)
    )
    chats = 0
    for chat_id in waiting.order_by("chat_id").values_list("chat_id", flat=True).distinct():
        oldest = turn_next(chat_id)
        if oldest is not None and not is_held(oldest, now):
            enqueue(chat_id)
            chats += 1
    return {"enqueued": chats, "unconfirmed": unconfirmed}


def _sending_settle(turn: Turn, now: datetime, unconfirmed_after: timedelta) -> int:
    """A send that nobody is at any more: what was begun long ago counts as unconfirmed."""
    OutboundPart.objects.filter(
        turn=turn, state=PartState.SENDING, started_at__lte=now - unconfirmed_after
    ).update(state=PartState.UNCONFIRMED)
    Turn.objects.filter(pk=turn.pk, lease_token=turn.lease_token).update(lease_token=None)
    turn_settle(turn=turn)
    turn.refresh_from_db()
    if turn.state == TurnState.UNCONFIRMED:
        logger.warning("Turn %s: it is not known whether its answer went out.", turn.turn_id)
        return 1
    return 0
