"""The turn's state machine: states, allowed transitions, and transition functions.

Only these functions assign ``Turn.state``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import QuerySet

from sessions_app.models import Turn
from sessions_app.models.turns import Outcome, TurnState

INITIAL_STATES: frozenset[str] = frozenset(
    {TurnState.PENDING, TurnState.REPLIED, TurnState.HELD, TurnState.MISSED, TurnState.REFUSED}
)

# docs/reference.md describes when each transition happens.
TRANSITIONS: Mapping[str, frozenset[str]] = {
    TurnState.PENDING: frozenset(
        {TurnState.RUNNING, TurnState.MERGED, TurnState.HELD, TurnState.CANCELLED}
    ),
    TurnState.RUNNING: frozenset(
        {
            TurnState.PENDING,
            TurnState.REPLIED,
            TurnState.DEFERRED,
            TurnState.MISSED,
            TurnState.REFUSED,
            TurnState.MERGED,
            TurnState.HELD,
            TurnState.CANCELLED,
            TurnState.FAILED,
        }
    ),
    TurnState.REPLIED: frozenset(
        {
            TurnState.SENDING,
            TurnState.SENT,
            TurnState.UNCONFIRMED,
            TurnState.REFUSED,
            TurnState.CANCELLED,
            TurnState.FAILED,
        }
    ),
    TurnState.SENDING: frozenset(
        {
            TurnState.SENDING,
            TurnState.REPLIED,
            TurnState.SENT,
            TurnState.UNCONFIRMED,
            TurnState.REFUSED,
            TurnState.FAILED,
        }
    ),
    TurnState.UNCONFIRMED: frozenset({TurnState.REPLIED, TurnState.SENT, TurnState.FAILED}),
    TurnState.DEFERRED: frozenset(
        {TurnState.PENDING, TurnState.HELD, TurnState.CANCELLED, TurnState.FAILED}
    ),
    TurnState.HELD: frozenset({TurnState.PENDING, TurnState.CANCELLED}),
    TurnState.FAILED: frozenset({TurnState.PENDING, TurnState.REPLIED}),
    # Of a failed answer alone, whose caller asks again.
    TurnState.SENT: frozenset({TurnState.PENDING}),
    TurnState.MISSED: frozenset(),
    TurnState.REFUSED: frozenset(),
    TurnState.MERGED: frozenset(),
    TurnState.CANCELLED: frozenset(),
}


# With these states the outcome is given; with REPLIED whoever makes the answer says it.
OUTCOMES: Mapping[str, str] = {
    TurnState.PENDING: "",
    TurnState.MISSED: Outcome.REFUSED,
    TurnState.REFUSED: Outcome.REFUSED,
    TurnState.FAILED: Outcome.FAILED,
}


class TransitionError(Exception):
    """The turn can't enter this state, or another transaction moved it first.

    Nothing was written.
    """


def states_before(to: str) -> list[str]:
    """Return the states from which a turn may enter this one."""
    return [state for state, allowed in TRANSITIONS.items() if to in allowed]


def _with_outcome(state: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    given = {"outcome": OUTCOMES[state]} if state in OUTCOMES else {}
    return {"state": state, **given, **fields}


def turn_create(*, state: str, **fields: Any) -> Turn:
    """Store a new turn. Raises TransitionError for a state in which no turn begins."""
    if state not in INITIAL_STATES:
        raise TransitionError(f"No turn begins as {state}.")
    return Turn.objects.create(**_with_outcome(state, fields))


def turn_move(turn: Turn, to: str, **fields: Any) -> None:
    """Move a turn and store these fields with its state.

    Other changes of the object are not stored. Raises TransitionError.
    """
    known = turn.state
    if to not in TRANSITIONS[known]:
        raise TransitionError(f"Turn {turn.pk} can't go from {known} to {to}.")
    changes = _with_outcome(to, fields)
    if not Turn.objects.filter(pk=turn.pk, state=known).update(**changes):
        raise TransitionError(f"Turn {turn.pk} is no longer {known}.")
    for name, value in changes.items():
        setattr(turn, name, value)


def turn_move_where(
    where: Mapping[str, Any], to: str, *, among: Collection[str] = TurnState.values, **fields: Any
) -> bool:
    """Move the turn that fits if it may enter the state, by one conditional UPDATE.

    Returns whether there was one. ``where``: lookups of a filter. ``among``: the states from which
    it may come here.
    """
    return bool(turns_move(Turn.objects.filter(**where, state__in=among), to, **fields))


def turns_move(turns: QuerySet[Turn], to: str, **fields: Any) -> int:
    """Move those of the turns that may enter the state, by one conditional UPDATE.

    Returns how many. ``turns`` carries the other conditions, such as the lease.
    """
    return turns.filter(state__in=states_before(to)).update(**_with_outcome(to, fields))
