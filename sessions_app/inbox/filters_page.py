"""The filters of the inbox: save them, rename, share and delete them."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Lower
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, pgettext_lazy

from memoryproject.foundation.admin_kit.list_filters import (
    PARAMETER as WHEN,
    UnknownSpanError,
    span_of,
)
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, rights_required, staff_page
from memoryproject.foundation.audit.audit_events import Actor, audit_record, staff_actor
from memoryproject.foundation.integrations.whatsapp.registry import numbers_if_several
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.tables import read_table
from sessions_app.inbox.chat_list import DUE, OPEN, REVIEWED, SNOOZED, STATES, Wanted
from sessions_app.inbox.move_markers import ReviewError
from sessions_app.limits.figures import FILTERS
from sessions_app.models import Chat, SavedFilter
from sessions_app.models.chats import Provider
from sessions_app.models.review import MAX_FILTER_NAME, MAX_FILTER_QUERY

# More would not fit over the list.
MAX_OWN = 20
MAX_SHARED = 20
SHARE = "sessions_app.review_chat"


def filters_for(user: User) -> QuerySet[SavedFilter]:
    """Return the person's own filters and the shared ones, by name."""
    return SavedFilter.objects.filter(Q(user=user) | Q(is_shared=True)).select_related("user")


def filter_save(*, user: User, name: str, query: str, is_shared: bool, actor: Actor) -> SavedFilter:
    """Keep filters under a name. Raises ReviewError."""
    if not query:
        raise ReviewError(_("Set a filter first; words of a search can't be saved."))
    if len(query) > MAX_FILTER_QUERY:
        raise ReviewError(_("These are too many filters."))
    with transaction.atomic():
        _lock(user)
        if SavedFilter.objects.filter(user=user).count() >= MAX_OWN:
            limit = _("You have %(number)s filters: delete one first.")
            raise ReviewError(limit % {"number": MAX_OWN})
        kept = SavedFilter(user=user, name=_name(user, name), query=query)
        if is_shared:
            _share(user, kept)
        kept.save()
        _record("filter.share", kept, actor)
    return kept


def filter_change(
    *,
    user: User,
    filter_id: int,
    actor: Actor,
    name: str | None = None,
    is_shared: bool | None = None,
) -> SavedFilter:
    """Rename, share or unshare a filter; None: this stays. Raises ReviewError."""
    with transaction.atomic():
        kept = _own(user, filter_id)
        was_shared = kept.is_shared
        if name is not None:
            kept.name = _name(kept.user, name, besides=kept)
        if is_shared is not None:
            kept.is_shared = False
            if is_shared:
                _share(user, kept)
        kept.save()
        if was_shared and not kept.is_shared:
            _record("filter.unshare", kept, actor, is_public=True)
        else:
            _record("filter.update" if was_shared else "filter.share", kept, actor)
    return kept


def filter_delete(*, user: User, filter_id: int, actor: Actor) -> str:
    """Delete a filter, and return its name. Raises ReviewError."""
    with transaction.atomic():
        kept = _own(user, filter_id)
        _record("filter.delete", kept, actor)
        kept.delete()
    return kept.name


def may_change(user: User, kept: SavedFilter) -> bool:
    """Return whether a filter is the person's own, or shared and the person may share filters."""
    return kept.user_id == user.pk or (kept.is_shared and user.has_perm(SHARE))


def _own(user: User, filter_id: int) -> SavedFilter:
    found = SavedFilter.objects.select_for_update(of=("self",)).filter(pk=filter_id)
    kept = found.select_related("user").first()
    if kept is None or not may_change(user, kept):
        raise ReviewError(_("That filter isn't there any more, or isn't yours."))
    _lock(kept.user)
    return kept


def _lock(user: User) -> None:
    """Let one request at a time change a person's filters: two at once would pass a limit."""
    User.objects.select_for_update().filter(pk=user.pk).first()


def _name(user: User, name: str, *, besides: SavedFilter | None = None) -> str:
    name = " ".join(name.replace("\x00", "").split())
    if not name:
        raise ReviewError(_("Give the filter a name."))
    if len(name) > MAX_FILTER_NAME:
        limit = _("The name may have %(number)s characters.")
        raise ReviewError(limit % {"number": MAX_FILTER_NAME})
    lowered = SavedFilter.objects.annotate(lowered=Lower("name"))
    same = lowered.filter(user=user, lowered=Lower(Value(name)))
    if besides is not None:
        same = same.exclude(pk=besides.pk)
    if same.exists():
        raise ReviewError(_("There is a filter of this name already."))
    return name


def _share(user: User, kept: SavedFilter) -> None:
    if not user.has_perm(SHARE):
        raise ReviewError(_("You may not share filters with the team."))
    if SavedFilter.objects.filter(is_shared=True).exclude(pk=kept.pk).count() >= MAX_SHARED:
        limit = _("The team has %(number)s filters: delete one first.")
        raise ReviewError(limit % {"number": MAX_SHARED})
    kept.is_shared = True


def _record(action: str, kept: SavedFilter, actor: Actor, *, is_public: bool = False) -> None:
    """Audit what others see of it; one's own filters are nobody else's business."""
    if not (kept.is_shared or is_public):
        return
    audit_record(action, actor, "filter", kept.pk)


# The page.


TEMPLATE = "admin/sessions_app/chat/filters.html"
PAGE = "admin:sessions_app_chat_filters"
SEE = "sessions_app.view_chat"
SHARING = {"share": True, "unshare": False}


@dataclass(frozen=True)
class KeptFilter:
    """A saved filter as it is displayed. ``here``: its list is the one that is open."""

    kept: SavedFilter
    address: str
    here: bool
    may_change: bool
    is_own: bool


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


def filters_page(request: HttpRequest) -> HttpResponse:
    """List the saved filters; by POST, ``do`` says what becomes of one."""
    rights_required(request, SEE)
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
    elif do == "rename" or do in SHARING:
        change: dict[str, Any] = {"is_shared": SHARING[do]} if do in SHARING else {"name": name}
        kept = filter_change(user=user, filter_id=key, actor=actor, **change)
        messages.success(request, _("Saved: %(name)s.") % {"name": kept.name})
    else:
        raise ReviewError(_("That can't be done with a filter."))
    return redirect(PAGE)


def _page(request: HttpRequest, *, status: int = HTTPStatus.OK) -> HttpResponse:
    context = {
        "crumb": _("Saved filters"),
        "kept_filters": saved_filters(request),
        "may_share": request.user.has_perm(SHARE),
        "longest": MAX_FILTER_NAME,
        "typed": request.POST,
    }
    return staff_page(request, TEMPLATE, _("Saved filters"), context, of=Chat, status=status)


FILTER_PAGES = {"filters": OwnPage("filters/", filters_page, "GET HEAD POST")}


# The filters of the inbox, as its address names them.

MAX_QUERY_LENGTH = 200
FLAGS = ("bookmarked", "failed", "needs", "paused", "unread", "unreviewed")
CHOSEN = {
    "access": FILTERS,
    "due": DUE,
    "kind": ("person", "group"),
    "memory": ("on", "off"),
    "provider": Provider.values,
    "state": STATES,
}
FILTERS_KEPT = (*sorted((*FLAGS, *CHOSEN, "assigned", "label", "number")), WHEN)
STATE_NAMES = (
    ("", gettext_lazy("All but snoozed")),
    (OPEN, pgettext_lazy("conversations", "Open")),
    (SNOOZED, gettext_lazy("Snoozed")),
    (REVIEWED, gettext_lazy("Reviewed")),
)

_WORDS = read_table(__file__, "words.yaml")
ACCESSES = tuple(zip(FILTERS, _WORDS["accesses"], strict=True))
DUES = tuple(zip(DUE, _WORDS["dues"], strict=True))


def wanted_of(parameters: QueryDict) -> Wanted:
    """Read the filters from the query string, and ignore invalid ones."""
    query = parameters.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    given: dict[str, Any] = {name: parameters.get(name) == "1" for name in FLAGS}
    # Filters that were saved before there was one queue.
    given["needs"] |= parameters.get("attention") == "1"
    for name, known in {**CHOSEN, "number": numbers_if_several()}.items():
        value = parameters.get(name, "")
        given[name] = value if value in known else ""
    return Wanted(
        query=query,
        assigned=_assigned(parameters.get("assigned", "")),
        label=number_of(parameters.get("label", "")),
        active=_span(parameters.get(WHEN, "")),
        **given,
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


def number_of(value: str) -> int | None:
    """Return the value as a primary key; None if it can't be one."""
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        return None
    return int(value)
