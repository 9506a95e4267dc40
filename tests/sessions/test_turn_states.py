"""The turn's state machine: the table, what enforces it, and what the docs say of it."""

from __future__ import annotations

import re
from itertools import product

import pytest
from django.utils import timezone

from sessions_app.models import Chat, Turn
from sessions_app.models.turn_states import (
    INITIAL_STATES,
    TRANSITIONS,
    TransitionError,
    turn_create,
    turn_move,
    turns_move,
)
from sessions_app.models.turns import UNUSUAL_STATES, WAITING_STATES, TurnState
from tests.docs.sources import read

FINAL = {
    TurnState.SENT,
    TurnState.MISSED,
    TurnState.REFUSED,
    TurnState.MERGED,
    TurnState.CANCELLED,
}
ROW = re.compile(r"^\| `(\w+)` \| `(\w+)` \| (.+) \|$", re.MULTILINE)
DRAWN = re.compile(r"^    (\w+(?: ──→ \w+)+)$", re.MULTILINE)
BEGINS = re.compile(r"A turn begins as (.+?)\. Every transition")
ENDS = re.compile(r"^(.+) are final\.$", re.MULTILINE)
# On Python 3.10 the type stubs don't know that choices can be iterated.
STATES = [TurnState(value) for value in TurnState.values]
MOVES = list(product(STATES, STATES))

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat() -> Chat:
    return Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="cloud")


def turn_in(chat: Chat, state: str) -> Turn:
    """A turn in any state, put there behind the state machine's back."""
    turn = Turn.objects.create(chat=chat, provider="cloud", asked_at=timezone.now())
    Turn.objects.filter(pk=turn.pk).update(state=state)
    turn.refresh_from_db()
    return turn


def named(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def test_every_state_has_a_row_and_can_be_reached() -> None:
    assert set(TRANSITIONS) == set(STATES)
    reached = set(INITIAL_STATES)
    while further := {to for state in reached for to in TRANSITIONS[state]} - reached:
        reached |= further
    assert reached == set(STATES)


def test_only_the_final_states_have_no_way_out() -> None:
    ends = {state for state, allowed in TRANSITIONS.items() if not allowed}
    # A call of the API that failed was told so; asked again, it is answered anew.
    assert ends | {TurnState.SENT} == FINAL
    assert TRANSITIONS[TurnState.SENT] == {TurnState.PENDING}


def test_every_turn_that_waits_can_still_be_sent_or_given_up() -> None:
    for state in (*WAITING_STATES, *UNUSUAL_STATES):
        if state in FINAL:
            continue
        ends, reached = set(), {state}
        while further := {to for each in reached for to in TRANSITIONS[each]} - reached:
            reached |= further
            ends = reached & FINAL
        assert TurnState.SENT in ends, state


def test_the_docs_have_the_same_transitions() -> None:
    rows = ROW.findall(read("docs/reference.md"))
    told = [(source, to) for source, to, _when in rows]
    assert len(told) == len(set(told)), "a transition is there twice"
    assert set(told) == {
        (str(state), str(to)) for state, allowed in TRANSITIONS.items() for to in allowed
    }


def test_the_docs_draw_only_what_is_allowed() -> None:
    (drawn,) = DRAWN.findall(read("docs/reference.md"))
    steps = [TurnState(name) for name in drawn.split(" ──→ ")]
    assert all(to in TRANSITIONS[state] for state, to in zip(steps, steps[1:], strict=False))
    assert (steps[0], steps[-1]) == (TurnState.PENDING, TurnState.SENT)


def test_the_docs_name_where_turns_begin_and_end() -> None:
    text = read("docs/reference.md")
    (begins,), (ends,) = BEGINS.findall(text), ENDS.findall(text)
    assert named(begins) == {str(state) for state in INITIAL_STATES}
    assert named(ends) == {str(state) for state in FINAL}


@pytest.mark.parametrize("state", STATES)
def test_a_turn_begins_in_an_initial_state_only(chat: Chat, state: TurnState) -> None:
    fields = {"chat": chat, "provider": "cloud", "asked_at": timezone.now()}
    if state in INITIAL_STATES:
        assert Turn.objects.get(pk=turn_create(state=state, **fields).pk).state == state
    else:
        with pytest.raises(TransitionError):
            turn_create(state=state, **fields)
        assert not Turn.objects.exists()


def test_a_turn_moves_where_the_table_allows_it_and_nowhere_else(chat: Chat) -> None:
    for state, to in MOVES:
        turn = turn_in(chat, state)
        if to in TRANSITIONS[state]:
            turn_move(turn, to, error="noted")
            assert (turn.state, turn.error) == (to, "noted")
            turn.refresh_from_db()
            assert (turn.state, turn.error) == (to, "noted")
        else:
            with pytest.raises(TransitionError):
                turn_move(turn, to, error="noted")
            turn.refresh_from_db()
            assert (turn.state, turn.error) == (state, "")
        turn.delete()


def test_of_many_turns_those_move_that_may(chat: Chat) -> None:
    for to in STATES:
        # One chat has one running turn.
        turns = {
            state: turn_in(chat, state)
            for state in STATES
            if to != TurnState.RUNNING or state == TurnState.PENDING
        }
        allowed = {state for state in turns if to in TRANSITIONS[state]}
        moved = turns_move(Turn.objects.filter(chat=chat), to, error="noted")
        assert moved == len(allowed), to
        noted = set(Turn.objects.filter(error="noted", state=to).values_list("pk", flat=True))
        assert noted == {turns[state].pk for state in allowed}
        Turn.objects.all().delete()


def test_a_turn_that_was_moved_meanwhile_is_not_moved_again(chat: Chat) -> None:
    turn = turn_in(chat, TurnState.PENDING)
    Turn.objects.filter(pk=turn.pk).update(state=TurnState.CANCELLED)
    with pytest.raises(TransitionError, match="no longer pending"):
        turn_move(turn, TurnState.HELD, error="noted")
    assert turn.state == TurnState.PENDING
    turn.refresh_from_db()
    assert (turn.state, turn.error) == (TurnState.CANCELLED, "")


def test_what_else_must_hold_is_part_of_the_same_update(
    chat: Chat, django_assert_num_queries: object
) -> None:
    turn = turn_in(chat, TurnState.RUNNING)
    nobodys = Turn.objects.filter(pk=turn.pk, lease_token="00000000-0000-0000-0000-000000000000")
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert turns_move(nobodys, TurnState.FAILED) == 0
    turn.refresh_from_db()
    assert turn.state == TurnState.RUNNING
