"""The schedule of retries, as pure logic."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.outgoing_webhooks.sending import (
    MAX_PAUSE,
    MAX_RETRY_AFTER,
    WAITS,
    next_wait,
    pause,
)

lucks = st.floats(min_value=0, max_value=1)
attempts = st.integers(min_value=1, max_value=len(WAITS))


@given(attempts, lucks)
def test_luck_makes_a_wait_up_to_a_fifth_longer(number: int, luck: float) -> None:
    wait = next_wait(attempts=number, luck=luck)
    assert wait is not None
    assert WAITS[number - 1] <= wait <= WAITS[number - 1] * 1.2


@given(attempts, lucks, st.floats(min_value=0, max_value=1e12))
def test_no_wait_is_shorter_than_asked_for(number: int, luck: float, asked: float) -> None:
    wait = next_wait(attempts=number, luck=luck, retry_after=asked)
    assert wait is not None
    assert wait >= min(timedelta(seconds=min(asked, 10**6)), MAX_RETRY_AFTER)
    assert wait <= max(WAITS[number - 1] * 1.2, MAX_RETRY_AFTER)


@given(st.integers(min_value=1, max_value=10**6))
def test_pauses_grow_and_end(failures: int) -> None:
    assert timedelta(seconds=5) <= pause(failures=failures) <= MAX_PAUSE
    assert pause(failures=failures) <= pause(failures=failures + 1)
