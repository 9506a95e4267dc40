"""The cost of the chat models by day, by model and by chat, as a page and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from memoryproject.foundation.admin_kit.display import cost_shown
from memoryproject.foundation.admin_kit.list_csv import csv_answer
from memoryproject.foundation.admin_kit.periods import DAYS, period_named
from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from memoryproject.staff_site.dashboard.figures import count_shown, figures_of
from sessions_app.limits.facade import Used, used_by_chat, used_by_day
from sessions_app.models import Chat

RIGHT = "sessions_app.view_turn"
NAMES = "sessions_app.view_chat"
MAX_CHATS = 100
MAX_CHATS_IN_CSV = 10_000
DEFAULT = "30"


@dataclass(frozen=True)
class Cell:
    """A figure with a short name, which it needs where a row has two lines."""

    label: str
    text: str


@dataclass(frozen=True)
class Row:
    """One row of a table. ``name``: as a person reads it; ``key``: as CSV has it.

    ``cost`` is None for a model without a price.
    """

    key: str
    name: str
    calls: int | None
    prompt: int
    completion: int
    cost: Decimal | float | None
    address: str = ""

    @property
    def cells(self) -> list[Cell]:
        calls = [] if self.calls is None else [Cell(_("Calls"), count_shown(self.calls))]
        cost = _("no price") if self.cost is None else cost_shown(self.cost)
        return [
            *calls,
            Cell(_("Prompt"), count_shown(self.prompt)),
            Cell(_("Completion"), count_shown(self.completion)),
            Cell(_("Estimated cost"), cost),
        ]

    @property
    def values(self) -> list[Any]:
        cost = "" if self.cost is None else f"{self.cost:.6f}"
        calls = "" if self.calls is None else self.calls
        return [self.key, calls, self.prompt, self.completion, cost, settings.MODEL_CURRENCY]


@never_cache
@require_safe
def costs_page(request: HttpRequest) -> HttpResponseBase:
    """Show the costs of a period, or with ``?table=`` one of the tables as CSV."""
    if not request.user.has_perm(RIGHT):
        raise PermissionDenied
    key = request.GET.get("period", DEFAULT)
    key = key if key in DAYS else DEFAULT
    if "table" in request.GET:
        return _csv(request, key, request.GET["table"])
    now = timezone.now()
    days = _by_day(key, now)
    total = sum((row.cost or Decimal(0) for row in days), Decimal(0))
    names = {"today": _("Today"), "7": _("7 days"), "30": _("30 days")}
    tokens = [_("Prompt tokens"), _("Completion tokens"), _("Estimated cost")]
    context = {
        **admin.site.each_context(request),
        "title": _("Costs"),
        "period": key,
        "periods": [(name, names[name]) for name in DAYS],
        "total": cost_shown(total),
        "has_prices": bool(settings.MODEL_PRICES),
        "may_configure": request.user.has_perm("dashboard.operate_server"),
        "tables": [
            ("days", _("By day"), [_("Day"), _("Model calls"), *tokens], days),
            ("models", _("By model, answers only"), [_("Model"), *tokens], _by_model(key, now)),
            *(
                [("chats", _("By person"), [_("Person"), _("Model calls"), *tokens], by_chat)]
                if (by_chat := _by_chat(request, key, now, MAX_CHATS)) is not None
                else []
            ),
        ],
        "most": MAX_CHATS,
    }
    return TemplateResponse(request, "dashboard/costs.html", context)


def _csv(request: HttpRequest, key: str, table: str) -> HttpResponseBase:
    now = timezone.now()
    rows: Sequence[Row] | None
    if table == "days":
        rows = _by_day(key, now)
    elif table == "models":
        rows = _by_model(key, now)
    elif table == "chats":
        rows = _by_chat(request, key, now, MAX_CHATS_IN_CSV)
    else:
        raise BadRequest("table: days, models or chats")
    if rows is None:
        raise PermissionDenied
    audit_record(
        action="export",
        actor=staff_actor(request),
        object_type="costs",
        details={"table": table, "rows": len(rows)},
    )
    titles = (table[:-1], "model_calls", "prompt_tokens", "completion_tokens", "cost", "currency")
    return csv_answer(f"costs-{table}-{key}", titles, (row.values for row in rows))


def _by_day(key: str, now: datetime) -> list[Row]:
    """Return a row for each day, the newest first, also for days without any use."""
    first, last = _days(key, now)
    found = used_by_day(first, last)
    days = [last - timedelta(days=number) for number in range(DAYS[key])]
    return [
        _row(day.isoformat(), date_format(day, "SHORT_DATE_FORMAT"), found.get(day, Used()))
        for day in days
    ]


def _by_model(key: str, now: datetime) -> list[Row]:
    by_model = figures_of(period_named(key, now=now)).whole.by_model(settings.MODEL_PRICES)
    unnamed = _("a model without a name")
    return [
        Row(each.model, each.model or unnamed, None, each.prompt, each.completion, each.cost)
        for each in by_model
    ]


def _by_chat(request: HttpRequest, key: str, now: datetime, most: int) -> list[Row] | None:
    """Return the rows of those who cost most; None if the reader may not see who they are."""
    if not request.user.has_perm(NAMES):
        return None
    used = used_by_chat(*_days(key, now), most=most)
    chats = Chat.objects.in_bulk([chat_id for chat_id, _used in used])
    return [
        _row(
            chats[chat_id].whatsapp_chat,
            chats[chat_id].shown_name,
            each,
            reverse("admin:sessions_app_chat_conversation", args=[chat_id]),
        )
        for chat_id, each in used
        if chat_id in chats
    ]


def _row(key: str, name: str, used: Used, address: str = "") -> Row:
    tokens = used.prompt_tokens, used.completion_tokens
    cost = used.cost if settings.MODEL_PRICES else None
    return Row(key, name, used.calls, *tokens, cost, address)


def _days(key: str, now: datetime) -> tuple[date, date]:
    """Return the first and the last day of a period, by the business's time zone."""
    today = timezone.localtime(now).date()
    return today - timedelta(days=DAYS[key] - 1), today
