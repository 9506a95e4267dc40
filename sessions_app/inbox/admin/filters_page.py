"""The page on which staff save filters of the inbox, rename, share and delete them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_http_methods

from memoryproject.foundation.admin_kit.periods import PARAMETER as WHEN
from memoryproject.foundation.admin_kit.periods import UnknownSpanError, span_of
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.process.narrowing import instance
from sessions_app.inbox.chat_list import OPEN, REVIEWED, SNOOZED, STATES, Wanted
from sessions_app.inbox.keep_filters import (
    SHARE,
    Change,
    filter_change,
    filter_delete,
    filter_save,
    filters_for,
    may_change,
)
from sessions_app.inbox.move_markers import ReviewError
from sessions_app.limits.facade import FILTERS
from sessions_app.models import Chat, SavedFilter
from sessions_app.models.chats import Provider
from sessions_app.models.review import MAX_FILTER_NAME

TEMPLATE = "admin/sessions_app/chat/filters.html"
PAGE = "admin:sessions_app_chat_filters"
SEE = "sessions_app.view_chat"
CHANGES = {"share": Change(is_shared=True), "unshare": Change(is_shared=False)}


@dataclass(frozen=True)
class KeptFilter:
    """A saved filter as it is displayed. ``here``: its list is the one that is open."""

    kept: SavedFilter
    address: str
    here: bool
    may_change: bool
    is_own: bool


def filter_urls(wrap: Callable[..., Any]) -> list[Any]:
    """Return the URL; ``wrap`` is the admin's wrapper for each of its pages."""
    return [path("filters/", wrap(filters_page), name="sessions_app_chat_filters")]


def saved_filters(request: HttpRequest, now: QueryDict | None = None) -> list[KeptFilter]:
    """Return the filters that the person may open. ``now``: the filters of the open list."""
    user = instance(request.user, User)
    here = filters_of(now).urlencode() if now is not None else ""
    inbox = reverse("admin:sessions_app_chat_changelist")
    return [
        KeptFilter(
            kept=kept,
            address=f"{inbox}?{kept.query}",
            here=kept.query == here and not (now and now.get("q")),
            may_change=may_change(user, kept),
            is_own=kept.user_id == user.pk,
        )
        for kept in filters_for(user)
    ]


@require_http_methods(["GET", "HEAD", "POST"])
def filters_page(request: HttpRequest) -> HttpResponse:
    """List the saved filters; by POST, ``do`` says what becomes of one."""
    if not request.user.has_perm(SEE):
        raise PermissionDenied
    if request.method != "POST":
        return _page(request)
    do = request.POST.get("do", "")
    if _shares(request, do) and not request.user.has_perm(SHARE):
        raise PermissionDenied
    try:
        return _done(request, do)
    except ReviewError as error:
        # What was typed stays.
        messages.error(request, str(error))
        return _page(request, status=HTTPStatus.BAD_REQUEST)


def _shares(request: HttpRequest, do: str) -> bool:
    return do == "share" or (do == "save" and request.POST.get("shared") == "1")


def _done(request: HttpRequest, do: str) -> HttpResponse:
    user, actor = instance(request.user, User), staff_actor(request)
    name = request.POST.get("name", "")
    if do == "save":
        query = filters_of(QueryDict(request.POST.get("query", ""))).urlencode()
        shared = request.POST.get("shared") == "1"
        kept = filter_save(user=user, name=name, query=query, is_shared=shared, actor=actor)
        messages.success(request, _("Saved: %(name)s.") % {"name": kept.name})
        return redirect(f"{reverse('admin:sessions_app_chat_changelist')}?{kept.query}")
    key = number_of(request.POST.get("filter", "")) or 0
    if do == "delete":
        name = filter_delete(user=user, filter_id=key, actor=actor)
        messages.success(request, _("Deleted: %(name)s.") % {"name": name})
    elif do == "rename" or do in CHANGES:
        change = CHANGES.get(do) or Change(name=name)
        kept = filter_change(user=user, filter_id=key, change=change, actor=actor)
        messages.success(request, _("Saved: %(name)s.") % {"name": kept.name})
    else:
        raise ReviewError(_("That can't be done with a filter."))
    return redirect(PAGE)


def _page(request: HttpRequest, *, status: int = HTTPStatus.OK) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": _("Saved filters"),
        "opts": Chat._meta,
        "crumb": _("Saved filters"),
        "kept_filters": saved_filters(request),
        "may_share": request.user.has_perm(SHARE),
        "longest": MAX_FILTER_NAME,
        "typed": request.POST,
    }
    return TemplateResponse(request, TEMPLATE, context, status=status)


# The filters of the inbox, as its address names them.

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
