"""Derive the state of a turn from the states of its parts."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from sessions_app.conversations.facade import SENDING, turn_failed, unstored_forget
from sessions_app.models import Turn
from sessions_app.models.chats import Provider
from sessions_app.models.deliveries import PartState
from sessions_app.models.turn_states import turns_move
from sessions_app.models.turns import TurnState


def turn_update_state(*, turn: Turn) -> bool:
    """Bring the turn's state in line with its parts; return whether more is to be sent.

    A part that is being sent, or whose result is unknown yet, keeps the turn in ``sending``.
    """
    states = set(turn.parts.values_list("state", flat=True))
    if PartState.FAILED in states:
        _finish(turn, TurnState.FAILED)
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


def _finish(turn: Turn, state: str) -> None:
    open_states = [TurnState.REPLIED, TurnState.SENDING, TurnState.UNCONFIRMED]
    unfinished = Turn.objects.filter(pk=turn.pk, state__in=open_states)
    with transaction.atomic():
        finished = turns_move(unfinished, state, finished_at=timezone.now())
        if finished and state == TurnState.FAILED:
            turn_failed(turn, stage=SENDING)
