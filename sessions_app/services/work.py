"""Works off the turns that wait in a chat, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from sessions_app.commands import parse_command
from sessions_app.models import Turn
from sessions_app.models.turns import TurnState
from sessions_app.services.answer import turn_run
from sessions_app.services.embed import messages_embed
from sessions_app.services.leases import Lease, LeaseLostError, turn_claim
from sessions_app.services.tools import Tools


def chat_answer(*, chat_id: UUID, tools: Tools, debounce: timedelta = timedelta(0)) -> int:
    """Answer every turn that waits in the chat; returns how many were worked on.

    Who finds another worker in the chat leaves at once: that one looks for more work before
    it goes, so nothing is left behind.
    """
    worked = 0
    while lease := turn_claim(chat_id=chat_id):
        if debounce:
            lease = burst_wait(lease=lease, chat_id=chat_id, debounce=debounce, sleep=tools.sleep)
        turn_run(lease=lease, tools=tools)
        messages_embed(chat_id=chat_id, embedder=tools.embedder)
        worked += 1
    return worked


def burst_wait(
    *,
    lease: Lease,
    chat_id: UUID,
    debounce: timedelta,
    sleep: Callable[[float], None] = time.sleep,
) -> Lease:
    """Wait until nobody has written for ``debounce``, then let the newest message of the
    burst stand for the others: theirs are merged into its turn. A command ends a burst.
    Returns the lease of the turn to answer."""
    while burst := _burst(chat_id):
        quiet_at = burst[-1].created_at + debounce
        wait = (quiet_at - timezone.now()).total_seconds()
        if wait <= 0:
            return _merge(lease, burst)
        sleep(min(wait, debounce.total_seconds()))
        lease.renew()
    return lease


def _burst(chat_id: UUID) -> list[Turn]:
    """The oldest waiting turns up to the first command; empty if that one is a command."""
    open_states = [TurnState.PENDING, TurnState.RUNNING]
    waiting = Turn.objects.filter(chat_id=chat_id, state__in=open_states)
    burst: list[Turn] = []
    for turn in waiting.select_related("message").order_by("id"):
        text = turn.message.content if turn.message else turn.unstored_text
        same_session = not burst or turn.session_id == burst[0].session_id
        if parse_command(text) or turn.message is None or not same_session:
            break
        burst.append(turn)
    return burst


def _merge(lease: Lease, burst: list[Turn]) -> Lease:
    """Hand the lease from the burst's first turn to its newest. The older messages stay in the
    history, where the newest turn's prompt has them."""
    if len(burst) < 2:
        return lease
    first, newest = burst[0], burst[-1]
    with transaction.atomic():
        held = lease.turn()
        if held.pk != first.pk:
            raise LeaseLostError("the burst changed while it was waited for")
        Turn.objects.filter(pk=newest.pk, state=TurnState.PENDING).update(
            state=TurnState.RUNNING,
            lease_token=held.lease_token,
            lease_owner=held.lease_owner,
            lease_until=held.lease_until,
        )
        Turn.objects.filter(pk__in=[turn.pk for turn in burst[:-1]]).update(
            state=TurnState.MERGED,
            finished_at=timezone.now(),
            lease_token=None,
            context={"merged_into": str(newest.turn_id)},
        )
    return Lease(turn_id=newest.pk, token=lease.token)
