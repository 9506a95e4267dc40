"""Answer one thought once: messages that come within seconds get one answer that knows all of them.

A burst is waited for before its answer is begun. What comes while the answer is made, before it is
stored, joins it: then the answer is made anew, once.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from memoryproject.foundation.leases import RELEASED
from sessions_app.models import Turn
from sessions_app.models.chats import Provider
from sessions_app.models.turn_states import turn_move
from sessions_app.models.turns import TurnState
from sessions_app.turns.turn_claims import WHOLE_TURNS, TurnLease, is_command

# The key of a turn's context: its message came while an answer was made, which was dropped.
REMADE = "remade"
# Marks the turn of a command, by a slash or in plain words, and of a text that says nothing.
QUICK = "quick"
# Who never stops writing is answered all the same, after so many times the wait for one message.
MAX_WAITS = 4

OPEN_STATES = (TurnState.PENDING, TurnState.RUNNING)


def without_open_bursts(turns: QuerySet[Turn], *, wait: timedelta, now: datetime) -> QuerySet[Turn]:
    """Leave out the turns of chats whose person may still be writing: wrote within ``wait``.

    A command, a notice and a message whose answer somebody waits for are never put off.
    """
    if not wait:
        return turns
    waiting = Turn.objects.filter(chat=OuterRef("chat"), state=TurnState.PENDING, attempts=0)
    at_once = waiting.filter(context__has_any_keys=["notice", QUICK])
    awaited = waiting.filter(provider=Provider.CONSOLE)
    fresh = waiting.filter(created_at__gt=now - wait)
    old = waiting.filter(created_at__lte=now - MAX_WAITS * wait)
    return turns.exclude(Exists(fresh) & ~Exists(old) & ~Exists(at_once) & ~Exists(awaited))


def burst_join(lease: TurnLease, *, gap: timedelta, begun_at: datetime | None = None) -> TurnLease:
    """Merge the burst that begins with the lease's turn into its newest turn.

    The newest message of the burst stands for the others. Each came within ``gap`` of the one
    before it, or after ``begun_at``, when the answer was begun.

    Returns the lease of the turn to answer, which is the same one where it is alone. Raises
    LeaseLostError.
    """
    while len(burst := _burst(lease, gap, begun_at)) > 1:
        if merged := _merge(lease, burst):
            return merged
    return lease


def names_file(context: Mapping[str, Any]) -> bool:
    """Return whether the turn has a file to read, which is done in its own turn."""
    return context.get("kind") in ("document", "voice", "audio")


def _burst(lease: TurnLease, gap: timedelta, begun_at: datetime | None) -> list[Turn]:
    """Return the turns that can be answered with the one of the lease, that one first.

    The burst ends before the first command. Messages at its end that hold nothing to read are left
    out. The list is empty where the turn must not be answered with others.
    """
    first = Turn.objects.only("chat_id").get(pk=lease.turn_id)
    waiting = Turn.objects.filter(
        chat_id=first.chat_id, state__in=OPEN_STATES, id__gte=lease.turn_id
    )
    burst: list[Turn] = []
    for turn in waiting.select_related("message", "chat").order_by("id"):
        is_alone = turn.message is None or is_command(turn) or names_file(turn.context)
        # A caller in the terminal or at the API waits for this very answer.
        is_awaited = turn.provider == str(Provider.CONSOLE)
        same_session = not burst or turn.session_id == burst[0].session_id
        is_later = burst and turn.created_at - burst[-1].created_at > gap
        is_meanwhile = begun_at is not None and turn.created_at >= begun_at
        if is_alone or is_awaited or not same_session or (is_later and not is_meanwhile):
            break
        burst.append(turn)
    while len(burst) > 1 and burst[-1].message and not burst[-1].message.content.strip():
        burst.pop()
    return burst if burst and burst[0].pk == lease.turn_id else []


def _merge(lease: TurnLease, burst: list[Turn]) -> TurnLease | None:
    """Hand the lease from the burst's first turn to its newest.

    The older messages stay in the history, where the newest turn's prompt has them. Returns None,
    and changes nothing, where one of the turns was cancelled meanwhile.
    """
    with transaction.atomic():
        held = lease.lock()
        turns = Turn.objects.select_for_update().filter(pk__in=[turn.pk for turn in burst])
        *older, newest = turns.order_by("id")
        if any(turn.state not in OPEN_STATES for turn in (*older, newest)):
            return None
        # The older ones first: one chat has one running turn.
        for turn in older:
            turn_move(
                turn,
                TurnState.MERGED,
                finished_at=timezone.now(),
                lease_token=None,
                context={**turn.context, "merged_into": str(newest.turn_id)},
            )
        turn_move(
            newest,
            TurnState.RUNNING,
            attempts=newest.attempts + 1,
            **{name: getattr(held, name) for name in RELEASED},
        )
    return TurnLease(WHOLE_TURNS.get(pk=newest.pk), lease.token)
