"""Links from figures to their lists, and who may open them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import NoReverseMatch, reverse

from memoryproject.foundation.admin_kit.periods import PARAMETER
from sessions_app.models.turns import WAITING_STATES

MESSAGES = "sessions_app_message"
CHATS = "sessions_app_chat"
TURNS = "sessions_app_turn"
MEMORIES = "memories_app_memory"
RECEIPTS = "sessions_app_forgetreceipt"
SCHEDULES = "django_q_schedule"
QUEUE = "django_q_ormq"
DELIVERIES = "sessions_app_inbounddelivery"

# Filters besides the period that make the list show the rows that the figure counts.
ALL_MEMORIES = {"state": "all"}
UNPROCESSED = {"processed": "no"}
HELD = {"state__exact": "held"}
RATED_BAD, RATED_GOOD = {"review": "bad"}, {"review": "good"}
TO_REVIEW = {"review": "todo"}
LIMITED = {"access": "limited"}
# Raw lookups, as Django's own lists accept them.
WAITING = {"state__in": ",".join(WAITING_STATES)}


class Places:
    """The lists that a person may open."""

    def __init__(self, user: Any) -> None:
        self._user = user
        self._lists: dict[str, str] = {}

    def may(self, right: str) -> bool:
        return bool(self._user.has_perm(right))

    def list_of(self, name: str, when: str = "", **filters: str) -> str:
        """Return the address of a list within a period; empty if this person has no such list."""
        if name not in self._lists:
            app_label, model = name.rsplit("_", 1)
            may_view = self.may(f"{app_label}.view_{model}")
            self._lists[name] = self._address(f"admin:{name}_changelist") if may_view else ""
        address = self._lists[name]
        values = {**({PARAMETER: when} if when else {}), **filters}
        return f"{address}?{urlencode(values)}" if address and values else address

    def review(self) -> str:
        """Return the address of the memories to review."""
        may_view = self.may("memories_app.view_memory")
        return self._address("admin:memories_app_memory_waiting") if may_view else ""

    def unknown_questions(self, when: str) -> str:
        """Return the address of a period's unknown questions, by topic."""
        rights = ("sessions_app.view_turn", "sessions_app.view_message")
        if not all(map(self.may, rights)):
            return ""
        address = self._address("admin:sessions_app_turn_unknown")
        return f"{address}?{urlencode({'period': when})}" if address else ""

    def operations(self) -> str:
        return self._address("admin:operations") if self.may("dashboard.operate_server") else ""

    def costs(self, when: str) -> str:
        """Return the address of the costs of a period."""
        if not self.may("sessions_app.view_turn"):
            return ""
        address = self._address("admin:costs")
        return f"{address}?{urlencode({'period': when})}" if address else ""

    def _address(self, name: str) -> str:
        try:
            return reverse(name)
        except NoReverseMatch:
            return ""
