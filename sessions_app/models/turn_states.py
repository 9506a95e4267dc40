"""The turn's state machine: states, allowed transitions, and transition functions.

Only these functions assign ``Turn.state``.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Q, QuerySet

from sessions_app.models import Turn
from sessions_app.models.turns import Outcome, TurnState

# Short, for the tables below.
S = TurnState
INITIAL_STATES: frozenset[str] = frozenset(
    {S.PENDING, S.REPLIED, S.HELD, S.MISSED, S.REFUSED, S.CANCELLED}
)

# docs/reference.md describes when each transition happens.
TRANSITIONS: Mapping[str, frozenset[str]] = {
    # A command that goes before a question is answered while the question is running.
    S.PENDING: frozenset(
        {S.RUNNING, S.MERGED, S.HELD, S.CANCELLED, S.REPLIED, S.SENDING, S.MISSED, S.REFUSED}
    ),
    S.RUNNING: frozenset(
        {
            S.PENDING,
            S.REPLIED,
            S.SENDING,
            S.DEFERRED,
            S.MISSED,
            S.REFUSED,
            S.MERGED,
            S.HELD,
            S.CANCELLED,
            S.FAILED,
        }
    ),
    S.REPLIED: frozenset({S.SENDING, S.SENT, S.UNCONFIRMED, S.REFUSED, S.CANCELLED, S.FAILED}),
    S.SENDING: frozenset({S.SENDING, S.REPLIED, S.SENT, S.UNCONFIRMED, S.REFUSED, S.FAILED}),
    S.UNCONFIRMED: frozenset({S.REPLIED, S.SENT, S.FAILED}),
    S.DEFERRED: frozenset({S.PENDING, S.HELD, S.CANCELLED, S.FAILED}),
    S.HELD: frozenset({S.PENDING, S.CANCELLED}),
    S.FAILED: frozenset({S.PENDING, S.REPLIED}),
    # Of a failed answer alone, whose caller asks again.
    S.SENT: frozenset({S.PENDING}),
    S.MISSED: frozenset(),
    S.REFUSED: frozenset(),
    S.MERGED: frozenset(),
    S.CANCELLED: frozenset(),
}


# With these states the outcome is given; with REPLIED whoever makes the answer says it.
OUTCOMES: Mapping[str, str] = {
    S.PENDING: "",
    S.MISSED: Outcome.REFUSED,
    S.REFUSED: Outcome.REFUSED,
    S.FAILED: Outcome.FAILED,
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
    this_turn = Turn.objects.filter(pk=turn.pk, chat=turn.chat_id, state=known)
    if not this_turn.update(**changes):
        raise TransitionError(f"Turn {turn.pk} is no longer {known}.")
    for name, value in changes.items():
        setattr(turn, name, value)


def turns_move(turns: QuerySet[Turn], to: str, **fields: Any) -> int:
    """Move those of the turns that may enter the state, by one conditional UPDATE.

    Returns how many. ``turns`` carries the other conditions, such as the lease.
    """
    return turns.filter(state__in=states_before(to)).update(**_with_outcome(to, fields))


def turns_restart(turns: QuerySet[Turn], **fields: Any) -> int:
    """Take from their workers those of the turns that are being answered: they are answered anew.

    Returns how many.
    """
    begun = turns.filter(Q(state=S.RUNNING) | Q(state=S.PENDING, lease_token__isnull=False))
    fields = {"lease_token": None, "lease_until": None, **fields}
    return begun.update(**_with_outcome(S.PENDING, fields))
