"""The dashboard's page, with figures that stay up to date, and the page of costs."""

import hashlib
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.formats import date_format
from django.utils.http import quote_etag
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from memoryproject.foundation.admin_kit import display, list_csv, staff_pages
from memoryproject.foundation.admin_kit.list_filters import DAYS, NAMES, TODAY, period_named
from memoryproject.foundation.audit.audit_events import staff_record
from memoryproject.staff_site.dashboard.board import board_for, sees_figures
from memoryproject.staff_site.dashboard.figures import count_shown, figures_of
from sessions_app.limits.figures import Used, used_by_chat, used_by_day
from sessions_app.models import Chat


def period_chosen(request: HttpRequest, default: str) -> str:
    """Return the name of the period that a page's address asks for."""
    key = request.GET.get("period", default)
    return key if key in DAYS else default


def overview_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context that the page needs besides that of every page."""
    period = period_chosen(request, TODAY)
    board = board_for(request.user, period=period, now=timezone.now())
    return {
        "period": period,
        "periods": NAMES.items(),
        "figures": _shown(request, board),
        "tag": _tag(board),
    }


@never_cache
def figures_page(request: HttpRequest) -> HttpResponseBase:
    """Return the figures alone; 304 if the browser shows the current ones."""
    if not sees_figures(request.user):
        raise PermissionDenied
    board = board_for(request.user, period=period_chosen(request, TODAY), now=timezone.now())
    tag = _tag(board)
    same = get_conditional_response(request, etag=tag)
    if same is not None:
        return same
    answer = render(request, "dashboard/fragment.html", {"figures": _shown(request, board)})
    answer["ETag"] = tag
    return answer


def _shown(request: HttpRequest, board: dict[str, Any]) -> str:
    return render_to_string("dashboard/board.html", {"board": board}, request)


def _tag(board: dict[str, Any]) -> str:
    """Return an ETag of the figures.

    Sizes on the disk change by themselves at any moment: they alone are no reason to show all
    figures anew.
    """
    calm = {
        part: [replace(each, value="", notes=()) if each.is_restless else each for each in tiles]
        for part, tiles in board.items()
        if part in ("needed", "now")
    }
    return quote_etag(hashlib.sha256(repr({**board, **calm}).encode()).hexdigest())


# The cost of the chat models by day, by model and by chat, as a page and as CSV.

RIGHT = "sessions_app.view_turn"
SEE_NAMES = "sessions_app.view_chat"
MAX_CHATS = 100
MAX_CHATS_IN_CSV = 10_000
DEFAULT = "30"
TABLES = ("days", "models", "chats")


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
    def cells(self) -> list[tuple[str, str]]:
        """Return the figures, each with a short name for screens where a row has two lines."""
        calls = [] if self.calls is None else [(_("Calls"), count_shown(self.calls))]
        cost = _("no price") if self.cost is None else display.cost_shown(self.cost)
        return [
            *calls,
            (_("Prompt"), count_shown(self.prompt)),
            (_("Completion"), count_shown(self.completion)),
            (_("Estimated cost"), cost),
        ]

    @property
    def values(self) -> list[Any]:
        cost = "" if self.cost is None else f"{self.cost:.6f}"
        calls = "" if self.calls is None else self.calls
        return [self.key, calls, self.prompt, self.completion, cost, settings.MODEL_CURRENCY]


@never_cache
def costs_page(request: HttpRequest) -> HttpResponseBase:
    """Show the costs of a period, or with ``?table=`` one of the tables as CSV."""
    staff_pages.rights_required(request, RIGHT)
    period = period_chosen(request, DEFAULT)
    if "table" in request.GET:
        return _csv(request, period, request.GET["table"])
    tokens = [_("Prompt tokens"), _("Completion tokens"), _("Estimated cost")]
    columns = {
        "days": (_("By day"), [_("Day"), _("Model calls"), *tokens]),
        "models": (_("By model, answers only"), [_("Model"), *tokens]),
        "chats": (_("By person"), [_("Person"), _("Model calls"), *tokens]),
    }
    rows = {table: _rows(request, period, table, MAX_CHATS) for table in TABLES}
    total = sum((row.cost or Decimal(0) for row in rows["days"] or ()), Decimal(0))
    context = {
        "period": period,
        "periods": NAMES.items(),
        "total": display.cost_shown(total),
        "has_prices": bool(settings.MODEL_PRICES),
        "may_configure": request.user.has_perm("dashboard.operate_server"),
        "tables": [
            (table, *columns[table], found) for table, found in rows.items() if found is not None
        ],
        "most": MAX_CHATS,
    }
    return staff_pages.staff_page(request, "dashboard/costs.html", _("Costs"), context)


def _csv(request: HttpRequest, period: str, table: str) -> HttpResponseBase:
    if table not in TABLES:
        raise BadRequest("table: days, models or chats")
    rows = _rows(request, period, table, MAX_CHATS_IN_CSV)
    if rows is None:
        raise PermissionDenied
    staff_record(request, "export", "costs", table=table, rows=len(rows))
    titles = (table[:-1], "model_calls", "prompt_tokens", "completion_tokens", "cost", "currency")
    return list_csv.csv_answer(f"costs-{table}-{period}", titles, (row.values for row in rows))


def _rows(request: HttpRequest, period: str, table: str, most: int) -> list[Row] | None:
    """Return the rows of a table; None if the reader may not see who the people are."""
    now = timezone.now()
    if table == "days":
        return _by_day(period, now)
    if table == "models":
        return _by_model(period, now)
    return _by_chat(period, now, most) if request.user.has_perm(SEE_NAMES) else None


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


def _by_chat(key: str, now: datetime, most: int) -> list[Row]:
    """Return the rows of those who cost most."""
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
