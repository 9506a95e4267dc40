"""The filters of the inbox, as its address names them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy, pgettext_lazy

from memoryproject.foundation.admin_kit.period_filter import PARAMETER as WHEN
from memoryproject.foundation.admin_kit.periods import UnknownSpanError, span_of
from sessions_app.inbox.chat_list import OPEN, REVIEWED, SNOOZED, STATES, Wanted
from sessions_app.limits.facade import FILTERS
from sessions_app.models.chats import Provider

MAX_QUERY_LENGTH = 200
FILTERS_KEPT = (
    *("access", "assigned", "attention", "bookmarked", "failed", "kind", "label", "memory"),
    *("paused", "provider", "state", "unread", "unreviewed", WHEN),
)
PERIODS = (
    ("today", gettext_lazy("Today")),
    ("7", gettext_lazy("Past 7 days")),
    ("30", gettext_lazy("Past 30 days")),
)
STATE_NAMES = (
    ("", gettext_lazy("All but snoozed")),
    (OPEN, pgettext_lazy("conversations", "Open")),
    (SNOOZED, gettext_lazy("Snoozed")),
    (REVIEWED, gettext_lazy("Reviewed")),
)

ACCESSES = tuple(
    zip(
        FILTERS,
        (
            gettext_lazy("blocked"),
            gettext_lazy("allowed"),
            gettext_lazy("neither blocked nor allowed"),
            gettext_lazy("opted out"),
            gettext_lazy("limit reached today"),
        ),
        strict=True,
    )
)


def wanted_of(parameters: QueryDict) -> Wanted:
    """Read the filters from the query string, and ignore invalid ones."""
    query = parameters.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    return Wanted(
        query=query,
        unread=parameters.get("unread") == "1",
        bookmarked=parameters.get("bookmarked") == "1",
        failed=parameters.get("failed") == "1",
        unreviewed=parameters.get("unreviewed") == "1",
        paused=parameters.get("paused") == "1",
        assigned=_assigned(parameters.get("assigned", "")),
        label=number_of(parameters.get("label", "")),
        provider=_one_of(parameters.get("provider", ""), Provider.values),
        kind=_one_of(parameters.get("kind", ""), ("person", "group")),
        access=_one_of(parameters.get("access", ""), FILTERS),
        memory=_one_of(parameters.get("memory", ""), ("on", "off")),
        state=_one_of(parameters.get("state", ""), STATES),
        attention=parameters.get("attention") == "1",
        active=_span(parameters.get(WHEN, "")),
    )


def filters_of(parameters: QueryDict) -> QueryDict:
    """Return the filters that have an effect, in a fixed order, without search words and pages."""
    found = QueryDict(mutable=True)
    for name in FILTERS_KEPT:
        value = parameters.get(name, "")
        alone = QueryDict(mutable=True)
        alone[name] = value
        if wanted_of(alone):
            found[name] = value
    return found


def _span(key: str) -> tuple[datetime, datetime] | None:
    try:
        return span_of(key, now=timezone.now())
    except UnknownSpanError:
        return None


def _assigned(who: str) -> str:
    if who in ("me", "nobody", "somebody"):
        return who
    number = number_of(who)
    return "" if number is None else str(number)


def _one_of(value: str, known: Any) -> str:
    return value if value in known else ""


def number_of(value: str) -> int | None:
    """Return the value as a primary key; None if it can't be one."""
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        return None
    return int(value)
