"""Retry calls to external servers after 1, 2 and 4 seconds, or later if the server asks for it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TypeVar

from typing_extensions import Self

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.context_limit import Overflow
from memoryproject.foundation.outside_services.guards import time_left

DELAYS = (1.0, 2.0, 4.0)
# A server may ask for minutes, but a person waits for the answer, and a lease must be renewed.
MAX_WAIT = 30.0
# No server means a longer time, and none can be added to a date.
MAX_RETRY_AFTER = 999_999.0

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class AttemptFailed(Exception):
    """One attempt failed. ``message``: the text, for staff.

    ``permanent``: a retry can't help.
    ``retry_after``: seconds that the server asked to wait, None if it asked for no wait.
    ``overflow``: the request is longer than the model reads; what the server says of it.
    ``refused``: the server refuses the request, and with another form it may not. ``words``: what
    it says of it, never shown as it is.
    ``sickness``: the weight of the failure as a sign of a sick service (see outside_services).
    ``is_outside``: the request isn't to blame, so that it may succeed once the service works again;
    by default what counts as sickness.
    ``is_unasked``: the service was left alone.
    """

    message: str
    _: KW_ONLY
    permanent: bool = False
    retry_after: float | None = None
    overflow: Overflow | None = None
    refused: bool = False
    words: str = ""
    sickness: int = 0
    is_outside: bool = False
    is_unasked: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.message)
        self.is_outside = self.is_outside or self.sickness > 0

    @property
    def sickness_text(self) -> str:
        """The failure's text without the words of the server, which may repeat a person's."""
        text = error_text(self)
        if isinstance(text, ErrorText) and text.code == "model_refused":
            return ErrorText("model_status", status=text.params["status"])
        if isinstance(text, ErrorText) and text.code == "model_unreadable_words":
            return ErrorText("model_unreadable")
        return text


@dataclass(eq=False, repr=False)
class CallError(Exception):
    """A service gave no answer after the retries; the base of the errors of models.

    ``permanent``: a retry can't help. ``overflow``: the request is longer than the model reads;
    what its server says of it. ``is_outside``: the request isn't to blame (the server is away, busy
    or refuses our account): the same request may succeed later.
    """

    message: str
    _: KW_ONLY
    permanent: bool = False
    overflow: Overflow | None = None
    is_outside: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.message)

    @classmethod
    def of(cls, failure: AttemptFailed) -> Self:
        """Return the error for the last failed attempt."""
        return cls(
            error_text(failure),
            permanent=failure.permanent,
            overflow=failure.overflow,
            is_outside=failure.is_outside,
        )


def do_nothing() -> None:
    """The ``before_attempt`` of callers that have no lease to renew. Does nothing."""


def call_with_retries(
    attempt: Callable[[], T],
    *,
    sleep: Callable[[float], None],
    before_attempt: Callable[[], None] = do_nothing,
    delays: Sequence[float] = DELAYS,
) -> tuple[T, int]:
    """Call ``attempt`` until it succeeds, at most once more than there are delays.

    Where a deadline is set, a retry that couldn't begin before it is not waited for.

    Returns its value and the number of attempts. Raises the last AttemptFailed for which the
    service was asked, the first permanent one, or any exception of ``before_attempt``.
    """
    latest: AttemptFailed | None = None
    for number, delay in enumerate(delays, start=1):
        before_attempt()
        try:
            return attempt(), number
        except AttemptFailed as failure:
            if failure.is_unasked and latest is not None:
                raise latest from None
            if failure.permanent:
                raise
            latest = failure
            if failure.retry_after is not None and failure.retry_after > MAX_WAIT:
                # Sooner it would be refused again.
                raise
            wait = wait_before_retry(delay, failure.retry_after)
            left = time_left()
            if left is not None and left <= wait:
                raise
        sleep(wait)
    before_attempt()
    return attempt(), len(delays) + 1


def wait_before_retry(delay: float, retry_after: float | None) -> float:
    """Return the seconds to wait: at least our own delay, and at most MAX_WAIT for the server's."""
    if retry_after is None:
        return delay
    return max(delay, min(retry_after, MAX_WAIT))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait; None if it asks for no wait."""
    milliseconds = headers.get("retry-after-ms", "")
    if milliseconds.isdecimal():
        # Azure says it more exactly so.
        return min(int(milliseconds) / 1000, MAX_RETRY_AFTER)
    seconds = parse_retry_after(headers.get("retry-after"), now=datetime.now(timezone.utc))
    return None if seconds is None else min(seconds, MAX_RETRY_AFTER)


def parse_retry_after(value: str | None, *, now: datetime) -> float | None:
    """Return the seconds in a Retry-After header (RFC 9110: a number or a date).

    None when there is no header or it can't be read. ``now`` is aware.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, now)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(value: str, now: datetime) -> float:
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return (moment - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return math.nan
