"""The times and costs of answers in the list of answers: filters and order."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db.models import Case, F, FloatField, QuerySet, Value, When
from django.db.models.expressions import Combinable, Expression
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memoryproject.foundation.admin_kit.display import small_cost_shown
from memoryproject.foundation.integrations.llm.base import MILLION
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.models import Turn, TurnReplay
from sessions_app.models.turns import TurnState, time_taken

SLOW, COST = "took", "cost"
DEAREST = "dearest"
SECONDS = (5, 15, 60)
OFFERED = tuple(map(str, SECONDS))
# The dearest are looked for among so many of the newest answers: prices change, so that no index
# can hold the costs.
NEWEST = 10_000
MAX_DEAREST = 100
# A server reports a dated name of a model: see prices.py.
_DATE = r"(-\d{4}-?\d{2}-?\d{2})?"


class SlowFilter(admin.SimpleListFilter):
    """Filter answers by the time from the message's arrival to the last part; an index serves."""

    title = gettext_lazy("duration")
    parameter_name = SLOW

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            (str(each), ngettext("over %(n)d second", "over %(n)d seconds", each) % {"n": each})
            for each in SECONDS
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Turn]) -> QuerySet[Turn]:
        value = self.value() or ""
        if value not in OFFERED:
            return queryset
        answered = queryset.filter(state=TurnState.SENT).alias(took_time=time_taken())
        return answered.filter(took_time__gt=timedelta(seconds=int(value)))


class CostFilter(admin.SimpleListFilter):
    """Filter the dearest of the newest answers, by today's prices."""

    title = gettext_lazy("cost")
    parameter_name = COST

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        if not settings.MODEL_PRICES:
            return []
        text = _("The %(n)d dearest of the newest %(all)s")
        return [(DEAREST, text % {"n": MAX_DEAREST, "all": f"{NEWEST:,}"})]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Turn]) -> QuerySet[Turn]:
        if self.value() != DEAREST or not settings.MODEL_PRICES:
            return queryset
        return queryset.filter(pk__in=_dearest_ids())


def sorting_of(request: HttpRequest) -> tuple[str, ...]:
    """Return the columns by which the list may be sorted: those for which it stays fast.

    Any other order would sort half a million rows.
    """
    columns = ["created_at"]
    if request.GET.get(SLOW, "") in OFFERED:
        columns.append("took")
    if request.GET.get(COST) == DEAREST and settings.MODEL_PRICES:
        columns.append("cost")
    return tuple(columns)


def cost_shown_of(replay: TurnReplay) -> str:
    """Return the cost of an answer by today's prices, or "" where there is no price."""
    if replay.prompt_tokens is None:
        return ""
    limits = build_usage_limits()
    cost = limits.cost_of(replay.model, replay.prompt_tokens, replay.completion_tokens or 0)
    return "" if cost is None else small_cost_shown(cost)


def cost_in_query(prefix: str = "replay__") -> Case:
    """Return the cost of an answer as an expression: that of ``UsageLimits.cost_of``."""
    prices = dict(settings.MODEL_PRICES)
    usual = prices.get(re.sub(f"{_DATE}$", "", settings.OPENAI_MODEL))
    usual = prices.get(settings.OPENAI_MODEL, usual)

    def cost(price: tuple[float, float]) -> Combinable:
        tokens_in, tokens_out = F(f"{prefix}prompt_tokens"), F(f"{prefix}completion_tokens")
        return (tokens_in * price[0] + tokens_out * price[1]) / Value(float(MILLION))

    named = [
        When(**{f"{prefix}model__regex": f"^{re.escape(name)}{_DATE}$"}, then=cost(price))
        for name, price in prices.items()
    ]
    return Case(*named, default=cost(usual) if usual else None, output_field=FloatField())


class CurrentCost(Expression):
    """The cost of an answer by the prices of the moment at which the list is sorted."""

    def resolve_expression(self, *args: Any, **kwargs: Any) -> Any:
        return cost_in_query().resolve_expression(*args, **kwargs)


def _dearest_ids() -> list[int]:
    newest = Turn.objects.order_by("-pk").values("pk")[:NEWEST]
    costs = TurnReplay.objects.filter(turn__in=newest, prompt_tokens__isnull=False)
    dearest = costs.alias(cost=cost_in_query("")).filter(cost__gt=0).order_by("-cost", "-turn")
    return list(dearest.values_list("pk", flat=True)[:MAX_DEAREST])
