"""Find a turn in a very long list: links, filters, and the search."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Case, F, FloatField, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable, Expression
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memoryproject.foundation.admin_kit import display, list_filters
from memoryproject.foundation.integrations.llm.base import MILLION
from sessions_app.conversations.chat_queries import with_name
from sessions_app.inbox.needs import to_review_ids
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.models import Chat, Turn, TurnReplay
from sessions_app.models.turns import TurnState, time_taken
from sessions_app.presentation.links import list_address
from sessions_app.turns.answer_review import causes_of_failures

# The filter offers the models of these turns only: a million rows is too many to read for five
# names.
NEWEST = 2_000
MAX_COUNTED = 1_000
MAX_CHATS = 50


@dataclass(frozen=True)
class QuickLink:
    """A link to a filtered list.

    ``count`` None: not counted.
    """

    title: str
    address: str
    bad: bool = False
    count: int | None = None

    @property
    def shown_count(self) -> str:
        if self.count is None:
            return ""
        return f"{MAX_COUNTED:,}+" if self.count >= MAX_COUNTED else f"{self.count:,}"


def quick_links(request: HttpRequest) -> list[QuickLink]:
    """Return the links that staff need first: to the turns to review, and the failed ones."""
    to_review = len(to_review_ids())
    unknown = QuickLink(_("Unknown questions"), reverse("admin:sessions_app_turn_unknown"))
    helped = QuickLink(_("Did it help?"), reverse("admin:sessions_app_turn_outcomes"))
    return [
        QuickLink(
            _("Answers to review"),
            list_address("sessions_app_turn", review="todo"),
            bool(to_review),
            to_review,
        ),
        *([unknown, helped] if request.user.has_perm("sessions_app.view_message") else []),
        _link(_("Failed"), TurnState.FAILED, counted=True),
        QuickLink(_("Failures by cause"), reverse("admin:sessions_app_turn_failures")),
        _link(_("Unconfirmed"), TurnState.UNCONFIRMED, counted=True),
        _link(_("Held"), TurnState.HELD),
        _link(_("Kept open"), TurnState.DEFERRED),
        _link(_("Missed"), TurnState.MISSED),
        _link(_("Not answered"), TurnState.REFUSED),
        _link(_("Waiting"), TurnState.PENDING),
        QuickLink(_("By staff"), list_address("sessions_app_turn", by_hand__exact=1)),
    ]


def _link(title: str, state: str, *, counted: bool = False) -> QuickLink:
    count = Turn.objects.filter(state=state)[:MAX_COUNTED].count() if counted else None
    return QuickLink(
        title, list_address("sessions_app_turn", state__exact=state), bool(count), count
    )


def _models(request: HttpRequest) -> list_filters.Offered:
    newest = Turn.objects.order_by("-pk").values("pk")[:NEWEST]
    models = TurnReplay.objects.filter(turn__in=newest).exclude(model="").order_by("model")
    names = set(models.values_list("model", flat=True).distinct())
    if chosen := request.GET.get("model", ""):
        names.add(chosen)
    return [(name, name) for name in sorted(names)]


def _causes(request: HttpRequest) -> list_filters.Choices:
    """Offer the cause that the page of causes leads here with."""
    key = request.GET.get("cause", "")
    return {key: (_("the same as on the page of causes"), _of_cause(key))} if key.isalnum() else {}


def _of_cause(key: str) -> Callable[[QuerySet[Turn]], QuerySet[Turn]]:
    def narrowed(turns: QuerySet[Turn]) -> QuerySet[Turn]:
        ids = {cause.key: cause.ids for cause in causes_of_failures()}
        return turns.filter(pk__in=ids.get(key, []))

    return narrowed


MODEL_FILTER = list_filters.value_filter(
    "model", gettext_lazy("model"), _models, lookup="replay__model"
)
CAUSE_FILTER = list_filters.choice_filter("cause", gettext_lazy("cause of failure"), _causes)


def turns_found(queryset: QuerySet[Turn], term: str) -> QuerySet[Turn]:
    """Find turns by the whole id, or by the name of the chat."""
    text = term.strip().replace("\x00", "")
    if not text:
        return queryset
    try:
        return queryset.filter(Q(turn_id=UUID(text)) | Q(chat=UUID(text)))
    except ValueError:
        return queryset.filter(chat__in=_chats_called(text))


def _chats_called(text: str) -> Sequence[UUID]:
    """Return the ids of the chats with this name.

    The ids are returned as values so that the query for their turns uses the index. Of more than
    MAX_CHATS chats, those with the newest messages count.
    """
    found = Chat.objects.filter(with_name(text)).order_by("-updated_at")
    return list(found.values_list("pk", flat=True)[:MAX_CHATS])


# Times and costs of answers.


SLOW, COST = "took", "cost"
DEAREST = "dearest"
SECONDS = (5, 15, 60)
OFFERED = tuple(map(str, SECONDS))
# The dearest are looked for among so many of the newest answers: prices change, so that no index
# can hold the costs.
NEWEST_BY_COST = 10_000
MAX_DEAREST = 100
# A server reports a dated name of a model: see prices.py.
_DATE = r"(-\d{4}-?\d{2}-?\d{2})?"


def _durations(_request: HttpRequest) -> list_filters.Choices:
    """Offer times from the message's arrival to the last part; an index serves."""
    return {
        str(each): (
            ngettext("over %(n)d second", "over %(n)d seconds", each) % {"n": each},
            _slower_than(timedelta(seconds=each)),
        )
        for each in SECONDS
    }


def _slower_than(least: timedelta) -> Callable[[QuerySet[Turn]], QuerySet[Turn]]:
    def narrowed(turns: QuerySet[Turn]) -> QuerySet[Turn]:
        answered = turns.filter(state=TurnState.SENT).alias(took_time=time_taken())
        return answered.filter(took_time__gt=least)

    return narrowed


def _costs(_request: HttpRequest) -> list_filters.Choices:
    """Offer the dearest of the newest answers, by today's prices."""
    if not settings.MODEL_PRICES:
        return {}
    text = _("The %(n)d dearest of the newest %(all)s")
    label = text % {"n": MAX_DEAREST, "all": f"{NEWEST_BY_COST:,}"}
    return {DEAREST: (label, lambda turns: turns.filter(pk__in=_dearest_ids()))}


SLOW_FILTER = list_filters.choice_filter(SLOW, gettext_lazy("duration"), _durations)
COST_FILTER = list_filters.choice_filter(COST, gettext_lazy("cost"), _costs)


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
    return "" if cost is None else display.small_cost_shown(cost)


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
    newest = Turn.objects.order_by("-pk").values("pk")[:NEWEST_BY_COST]
    costs = TurnReplay.objects.filter(turn__in=newest, prompt_tokens__isnull=False)
    dearest = costs.alias(cost=cost_in_query("")).filter(cost__gt=0).order_by("-cost", "-turn")
    return list(dearest.values_list("pk", flat=True)[:MAX_DEAREST])
