"""Find a turn in a very long list: by chat, by state, by model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sessions_app.conversations.facade import with_name
from sessions_app.models import Chat, Turn, TurnReplay
from sessions_app.models.turns import TurnState
from sessions_app.presentation.links import list_address
from sessions_app.turns.answer_review import causes_of_failures, to_review_ids

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
    return [
        QuickLink(
            _("Answers to review"),
            list_address("sessions_app_turn", review="todo"),
            bool(to_review),
            to_review,
        ),
        *([unknown] if request.user.has_perm("sessions_app.view_message") else []),
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


class ModelFilter(admin.SimpleListFilter):
    """Filter by the chat model that answered."""

    title = gettext_lazy("model")
    parameter_name = "model"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        newest = Turn.objects.order_by("-pk").values("pk")[:NEWEST]
        replays = TurnReplay.objects.filter(turn__in=newest)
        models = replays.exclude(model="").order_by("model")
        names = set(models.values_list("model", flat=True).distinct())
        chosen = request.GET.get(self.parameter_name, "")
        if chosen and "\x00" not in chosen:
            names.add(chosen)
        return [(name, name) for name in sorted(names)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Turn]) -> QuerySet[Turn]:
        name = self.value()
        return queryset.filter(replay__model=name) if name and "\x00" not in name else queryset


class CauseFilter(admin.SimpleListFilter):
    """Filter the failed answers of one cause; the page of causes leads here."""

    title = gettext_lazy("cause of failure")
    parameter_name = "cause"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        key = request.GET.get(self.parameter_name, "")
        return [(key, _("the same as on the page of causes"))] if key.isalnum() else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Turn]) -> QuerySet[Turn]:
        key = self.value()
        if not key:
            return queryset
        ids = {cause.key: cause.ids for cause in causes_of_failures()}
        return queryset.filter(pk__in=ids.get(key, []))


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
