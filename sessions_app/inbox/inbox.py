"""Serve the inbox: the list of chats as staff work through it, kept up to date while open."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memoryproject.foundation.admin_kit.display import moment_shown
from memoryproject.foundation.admin_kit.list_filters import PARAMETER as WHEN, PAST_NAMES
from memoryproject.foundation.admin_kit.staff_pages import staff_page
from memoryproject.foundation.audit.audit_events import Actor, staff_read_record
from memoryproject.foundation.integrations.whatsapp.registry import numbers_if_several
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.inbox import filters_page
from sessions_app.inbox.chat_list import Wanted
from sessions_app.inbox.inbox_list import Figures, Listing, figures_of, list_context, listing_of
from sessions_app.inbox.move_markers import ReviewError, chats_snooze
from sessions_app.models import Chat, Label, Message
from sessions_app.models.chats import Provider
from sessions_app.models.review import MAX_FILTER_NAME
from sessions_app.presentation.links import conversation_address, made_at
from sessions_app.recall.facade import RECENT, Snippet, messages_searched, snippet_of

LIST = "admin/sessions_app/chat/inbox_fragment.html"
PANE = "admin/sessions_app/chat/inbox_pane.html"
# What the open page asks for.
FIGURES, BESIDE = "figures", "pane"
# A window that is wide enough has this cookie, with the filters of the list that was open last.
COOKIE = "inbox-pane"
MAX_QUERY = 2_000


def inbox_fragment(request: HttpRequest, actions: list[tuple[str, str]]) -> HttpResponse:
    """Return the open inbox's list alone, or 304 where nothing changed since.

    The page sends its own version in ``If-None-Match``. The version is made of the rows, before
    the list is rendered. With ``X-Live: pane`` the list is made for the page of the conversation
    that ``X-Chat`` names. With ``X-Live: figures``, for a page that nobody looks at, the response
    is empty and its headers have the numbers for the page's title and the menu. Nothing was read
    then, so it isn't audited.
    """
    if request.headers.get("X-Live") == FIGURES:
        numbers = _headers(figures_of(request, request.GET))
        return HttpResponse(status=HTTPStatus.NO_CONTENT, headers=numbers)
    listing = listing_of(request, request.GET)
    tag = listing.version
    same = get_conditional_response(request, etag=tag)
    if same is not None and same.status_code == HTTPStatus.NOT_MODIFIED:
        return same
    if listing.reads:
        list_record(request, searched=bool(request.GET.get("q")))
    if request.headers.get("X-Live") == BESIDE:
        chat_id = uuid_or_none(request.headers.get("X-Chat", ""))
        context = _beside(request, request.GET, listing, chat_id)
    else:
        context = list_context(request, request.GET, listing, actions)
    shown = render_to_string(LIST, context, request)
    return HttpResponse(shown, headers={"ETag": tag, **_headers(listing.figures)})


def _headers(figures: Figures) -> dict[str, str]:
    return {
        "X-Unread": str(figures.unread),
        "X-News": str(figures.news),
        "X-Attention": str(figures.attention),
    }


def inbox_pane(request: HttpRequest, chat_id: UUID) -> SafeString | None:
    """Return the list of the inbox for the page of this conversation; None in a narrow window.

    The list is the one that was open last.
    """
    if COOKIE not in request.COOKIES:
        return None
    query = unquote(request.COOKIES[COOKIE])[:MAX_QUERY]
    parameters = QueryDict(query)
    listing = listing_of(request, parameters)
    if listing.reads:
        list_record(request, searched=bool(parameters.get("q")))
    context = _beside(request, parameters, listing, chat_id)
    return render_to_string(PANE, {**context, "query": parameters.urlencode()}, request)


def _beside(
    request: HttpRequest, parameters: QueryDict, listing: Listing, chat_id: UUID | None
) -> dict[str, Any]:
    """Return what the list needs beside a conversation, where nothing can be done with it."""
    inbox = reverse("admin:sessions_app_chat_changelist")
    context = list_context(request, parameters, listing, [], inbox=inbox)
    return {**context, "reviews": False, "open_chat": chat_id}


def list_record(request: HttpRequest, *, searched: bool) -> None:
    """Audit that the user saw the last messages of many chats; the search text isn't recorded."""
    staff_read_record(request, list="chat", searched=searched)


# The page.


TEMPLATE = "admin/sessions_app/chat/inbox.html"
HITS = 20
MAX_HITS = 400


@dataclass(frozen=True)
class Hit:
    """A message that was found."""

    message: Message
    address: str
    snippet: Snippet


def inbox_page(request: HttpRequest, actions: list[tuple[str, str]]) -> TemplateResponse:
    """Show the inbox; ``actions`` are the admin's own actions for selected chats."""
    listing = listing_of(request, request.GET)
    wanted = listing.wanted
    searched = listing.reads and wanted.query
    hits, more, in_part = _hits(request, wanted) if searched else ([], "", False)
    if listing.reads:
        list_record(request, searched=bool(wanted.query))
    kept = filters_page.saved_filters(request, request.GET)
    context = {
        **list_context(request, request.GET, listing, actions),
        "hits": hits,
        "more_hits": more,
        "in_part": RECENT if in_part else 0,
        "narrowed": _is_narrowed(wanted),
        "state_names": filters_page.STATE_NAMES,
        "snoozes": CHOICES,
        "staff": staff_choices(),
        "assignees": staff_choices(also=filters_page.number_of(wanted.assigned)),
        "labels": list(Label.objects.all()),
        "providers": Provider.choices,
        "numbers": numbers_if_several(),
        "accesses": filters_page.ACCESSES,
        "dues": filters_page.DUES,
        "when": request.GET.get(WHEN, ""),
        "periods": PAST_NAMES.items(),
        "kept_filters": kept,
        "filters_now": filters_page.filters_of(request.GET).urlencode(),
        "is_kept": any(each.here for each in kept),
        "may_share": request.user.has_perm(filters_page.SHARE),
        "longest": MAX_FILTER_NAME,
    }
    return staff_page(request, TEMPLATE, _("Inbox"), context, of=Chat)


def _is_narrowed(wanted: Wanted) -> bool:
    """Return whether there are filters besides those of the tabs and states."""
    assigned = "" if wanted.assigned in ("me", "nobody") else wanted.assigned
    return bool(replace(wanted, query="", state="", needs=False, assigned=assigned))


def staff_choices(*, also: int | None = None) -> list[dict[str, Any]]:
    """Return key and name of the staff members to whom a conversation can be assigned.

    ``also`` is the current assignee, whose account may be inactive by now; without this option a
    form would show another person, or nobody.
    """
    can_log_in = Q(is_active=True, is_staff=True)
    found = User.objects.filter(can_log_in | Q(pk=also)).order_by("username")
    return [{"pk": each.pk, "name": _choice_name(each)} for each in found]


def _choice_name(user: User) -> str:
    if user.is_active and user.is_staff:
        return user.get_username()
    return _("%(name)s (switched off)") % {"name": user.get_username()}


def _hits(request: HttpRequest, wanted: Wanted) -> tuple[list[Hit], str, bool]:
    """Return the newest messages with these words in all chats.

    Also returns the address of older ones, and whether only parts of their words match.
    """
    first = min(filters_page.number_of(request.GET.get("hits", "")) or 0, MAX_HITS)
    found, in_part = messages_searched(wanted.query, first, HITS + 1)
    more = ""
    if len(found) > HITS and first + HITS <= MAX_HITS:
        parameters = request.GET.copy()
        parameters["hits"] = str(first + HITS)
        more = f"?{parameters.urlencode()}#hits"
    hits = [
        Hit(
            message,
            conversation_address(message.chat_id, message.pk, query=wanted.query),
            snippet_of(message.content, wanted.query),
        )
        for message in found[:HITS]
    ]
    return hits, more, in_part


def chosen_chats(request: HttpRequest) -> list[UUID]:
    """Return the chats that were ticked, without invalid ids."""
    ticked = map(uuid_or_none, request.POST.getlist("_selected_action"))
    return [key for key in ticked if key is not None]


# Put conversations off by a form, until a time of the business's clock.

MORNING = time(9)
HOURS = {"1h": 1, "4h": 4}
DAYS = {"morning": 1, "week": 7}
CHOICES = (
    ("1h", gettext_lazy("for 1 hour")),
    ("4h", gettext_lazy("for 4 hours")),
    ("morning", gettext_lazy("until tomorrow, 9:00")),
    ("week", gettext_lazy("for a week")),
)


class UntilForm(forms.Form):
    """A time of the business's clock, in the format that browsers send."""

    until = forms.DateTimeField(
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"],
        error_messages={
            "required": gettext_lazy("Say until when."),
            "invalid": gettext_lazy("That is no date with a time, or the clock skips it."),
        },
    )


def snooze(review: "ReviewRequest") -> str:
    until = _until(review)
    count = chats_snooze(**review.of_user, until=until, seen_at=review.seen_at())
    when = moment_shown(until)
    return ngettext(
        "%(count)s conversation is snoozed until %(time)s.",
        "%(count)s conversations are snoozed until %(time)s.",
        count,
    ) % {"count": count, "time": when}


def _until(review: "ReviewRequest") -> datetime:
    now = timezone.now()
    lasts = review.value
    if lasts in HOURS:
        return now + timedelta(hours=HOURS[lasts])
    if lasts in DAYS:
        zone = timezone.get_current_timezone()
        day = now.astimezone(zone).date() + timedelta(days=DAYS[lasts])
        return datetime.combine(day, MORNING, zone)
    try:
        return until_posted(review.request)
    except forms.ValidationError as error:
        raise ReviewError(" ".join(error.messages)) from error


def until_posted(request: HttpRequest) -> datetime:
    """Return the time in the field ``until``. Raises ValidationError."""
    form = UntilForm(request.POST)
    if not form.is_valid():
        raise forms.ValidationError([str(each) for each in form.errors["until"]])
    until: datetime = form.cleaned_data["until"]
    return until


# The fields that a form about some chats posts.


@dataclass(frozen=True)
class ReviewRequest:
    """A request of a staff member about some chats."""

    request: HttpRequest
    user: User
    actor: Actor
    chats: list[UUID]
    value: str

    @property
    def of_actor(self) -> dict[str, Any]:
        """Return the chats and the actor, as the services of chats take them."""
        return {"chat_ids": self.chats, "actor": self.actor}

    @property
    def of_user(self) -> dict[str, Any]:
        """Return the same with the user whose markers change."""
        return {**self.of_actor, "user": self.user}

    @property
    def chat(self) -> UUID:
        return self.chats[0]

    @property
    def message(self) -> UUID | None:
        return uuid_or_none(self.value or self.request.POST.get("message", ""))

    def seen(self) -> dict[UUID, UUID]:
        """Return the last message that was shown of each chat."""
        found = {key: uuid_or_none(text) for key, text in self._of_each("seen").items()}
        return {key: message for key, message in found.items() if message is not None}

    def seen_at(self) -> datetime | None:
        """Return the time when the page of the form was made."""
        return made_at(self.request.POST.get("made", ""))

    def was(self) -> dict[UUID, str]:
        """Return the assignee that was shown for each chat."""
        return self._of_each("was")

    def _of_each(self, name: str) -> dict[UUID, str]:
        posted = {key: self.request.POST.get(f"{name}-{key}") for key in self.chats}
        return {key: value for key, value in posted.items() if value is not None}


Do = Callable[[ReviewRequest], str]
