"""The retry policy that every outside call shares."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given, strategies as st

from memoryproject.foundation.integrations.retry import (
    MAX_WAIT,
    AttemptFailed,
    call_with_retries,
    parse_retry_after,
    wait_before_retry,
)
from tests.tables import table

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=timezone.utc)


class Attempt:
    """Fails with each of the failures in turn, then succeeds."""

    def __init__(self, *failures: AttemptFailed) -> None:
        self.failures = list(failures)

    def __call__(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "done"


def test_three_failures_are_waited_out() -> None:
    waits: list[float] = []
    attempt = Attempt(*(AttemptFailed("busy") for _ in range(3)))
    assert call_with_retries(attempt, sleep=waits.append) == ("done", 4)
    assert waits == [1.0, 2.0, 4.0]


def test_the_fourth_failure_is_the_last() -> None:
    waits: list[float] = []
    attempt = Attempt(*(AttemptFailed(f"busy {number}") for number in range(5)))
    with pytest.raises(AttemptFailed, match="busy 3"):
        call_with_retries(attempt, sleep=waits.append)
    assert waits == [1.0, 2.0, 4.0]


def test_a_permanent_failure_is_not_tried_again() -> None:
    waits: list[float] = []
    attempt = Attempt(AttemptFailed("busy"), AttemptFailed("no", permanent=True))
    with pytest.raises(AttemptFailed, match="no"):
        call_with_retries(attempt, sleep=waits.append)
    assert waits == [1.0]


def test_before_attempt_comes_before_every_try_and_its_error_ends_all() -> None:
    events: list[str] = []

    def renew() -> None:
        events.append("renew")
        if len(events) == 5:
            raise LookupError("lease lost")

    with pytest.raises(LookupError, match="lease lost"):
        call_with_retries(
            Attempt(*(AttemptFailed("busy") for _ in range(9))),
            sleep=lambda seconds: events.append(f"sleep {seconds:g}"),
            before_attempt=renew,
        )
    assert events == ["renew", "sleep 1", "renew", "sleep 2", "renew"]


@table(("retry_after", "wait"), [(None, 2.0), (0.0, 2.0), (9.0, 9.0), (3600.0, MAX_WAIT)])
def test_the_servers_wish_lengthens_a_wait(retry_after: float | None, wait: float) -> None:
    assert wait_before_retry(2.0, retry_after) == wait


@table(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (format_datetime(NOW + timedelta(seconds=20), usegmt=True), 20.0),
        (format_datetime(NOW - timedelta(seconds=20), usegmt=True), 0.0),
        ("Sat, 01 Mar 2025 12:00:05 -0000", 5.0),
    ],
)
def test_retry_after_headers(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, now=NOW) == seconds


@given(st.text())
def test_any_header_gives_a_usable_number_or_none(header: str) -> None:
    seconds = parse_retry_after(header, now=NOW)
    assert seconds is None or 0 <= seconds < float("inf")
