"""The tabs over the inbox, each with its number of conversations, and the states beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext_lazy

from sessions_app.inbox.admin.inbox_filters import STATE_NAMES
from sessions_app.inbox.chat_list import Wanted

# More are shown as "99+".
MAX_IN_TAB = 100
TABS: tuple[tuple[Any, Mapping[str, str]], ...] = (
    (gettext_lazy("Mine"), {"assigned": "me"}),
    (gettext_lazy("Unassigned"), {"assigned": "nobody"}),
    (gettext_lazy("All"), {}),
    (gettext_lazy("Needs attention"), {"attention": "1"}),
)


@dataclass(frozen=True)
class Tab:
    """A link to a part of the inbox. ``count``: the number of its conversations, if counted."""

    title: Any
    address: str
    here: bool
    count: int | None = None

    @property
    def number(self) -> str:
        return "99+" if (self.count or 0) > 99 else str(self.count)


def tabs_of(wanted: Wanted, count: Callable[[Wanted], int]) -> list[Tab]:
    """Return the tabs; ``count`` counts the chats of one. They keep the state and nothing else."""
    state = {"state": wanted.state} if wanted.state else {}
    here = _tab_of(wanted)
    return [
        Tab(title, f"?{urlencode({**narrowed, **state})}", narrowed == here, count(part))
        for title, narrowed in TABS
        for part in [
            Wanted(
                assigned=narrowed.get("assigned", ""),
                attention="attention" in narrowed,
                state=wanted.state,
            )
        ]
    ]


def states_of(parameters: QueryDict, wanted: Wanted) -> Sequence[Tab]:
    """Return the states of the conversations in this tab; they keep all other filters."""
    return [
        Tab(title, _with_state(parameters, state), state == wanted.state)
        for state, title in STATE_NAMES
    ]


def _tab_of(wanted: Wanted) -> Mapping[str, str] | None:
    """Return what narrows the tab that is open; None for filters that no tab has."""
    if wanted.attention:
        return None if wanted.assigned else {"attention": "1"}
    if wanted.assigned in ("me", "nobody"):
        return {"assigned": wanted.assigned}
    return None if wanted.assigned else {}


def _with_state(given: QueryDict, state: str) -> str:
    parameters = given.copy()
    for name in ("p", "hits", "state"):
        parameters.pop(name, None)
    if state:
        parameters["state"] = state
    return f"?{parameters.urlencode()}"
