"""The turn's state machine: the table, what enforces it, and what the docs say of it."""

from __future__ import annotations

import re
from itertools import product

import pytest
from django.utils import timezone

from sessions_app.models import Chat, Turn
from sessions_app.models.turns import (
    INITIAL_STATES,
    TRANSITIONS,
    TransitionError,
    TurnState,
    turn_create,
    turn_move,
    turns_move,
)
from tests.docs.sources import read

FINAL = {TurnState.SENT, TurnState.MISSED, TurnState.REFUSED, TurnState.MERGED, TurnState.CANCELLED}
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


def test_a_turn_that_was_moved_meanwhile_is_not_moved_again(chat: Chat) -> None:
    turn = turn_in(chat, TurnState.PENDING)
    Turn.objects.filter(pk=turn.pk).update(state=TurnState.CANCELLED)
    with pytest.raises(TransitionError, match="no longer pending"):
        turn_move(turn, TurnState.HELD, error="noted")
    assert turn.state == TurnState.PENDING
    turn.refresh_from_db()
    assert (turn.state, turn.error) == (TurnState.CANCELLED, "")


def test_one_update_holds_all_conditions(chat: Chat, django_assert_num_queries: object) -> None:
    turn = turn_in(chat, TurnState.RUNNING)
    nobodys = Turn.objects.filter(pk=turn.pk, lease_token="00000000-0000-0000-0000-000000000000")
    with django_assert_num_queries(1):  # type: ignore[operator]
        assert turns_move(nobodys, TurnState.FAILED) == 0
    turn.refresh_from_db()
    assert turn.state == TurnState.RUNNING
