"""Serve the page on which staff search for texts to forget and select from the results."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from memoryproject.foundation.time_limit import TooSlowError
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.admin.forms import SearchForm
from sessions_app.forgetting.find_matches import (
    MEMORY,
    MESSAGE,
    Matches,
    Wanted,
    matches_all,
    matches_find,
)
from sessions_app.forgetting.runs import MAX_ITEMS, Chosen, TooManyError, run_draft
from sessions_app.models import Chat, ChatSession, ForgetRun, ForgottenKind, Message

TEMPLATE = "admin/sessions_app/forgetrun/search.html"


@require_http_methods(["GET", "HEAD", "POST"])
def search_page(request: HttpRequest, site: dict[str, Any]) -> HttpResponse:
    """Search by POST, so that the search text is in no address and no log."""
    forget_required(request)
    if not request.user.has_perms(READ):
        raise PermissionDenied
    form = SearchForm(request.POST) if request.method == "POST" else SearchForm()
    found: Matches | None = None
    if form.is_bound and form.is_valid():
        found = _found(request, form)
    return _page(request, site, form, found)


@require_POST
def choose_page(request: HttpRequest, site: dict[str, Any]) -> HttpResponse:
    """Store the selected results, or all of them, as a draft."""
    forget_required(request)
    if not request.user.has_perms(READ):
        raise PermissionDenied
    form = SearchForm(request.POST)
    if not form.is_valid():
        return _page(request, site, form, None)
    try:
        chosen = _chosen(request, form.wanted())
        run = run_draft(chosen=chosen, asked_by=request.user.get_username())
    except TooManyError:
        text = _("At most {most} are erased at once. Narrow the search first.")
        messages.error(request, text.format(most=MAX_ITEMS))
    except TooSlowError:
        messages.error(request, _too_slow())
    except ValueError:
        messages.error(request, _("Nothing is chosen."))
    else:
        return redirect(run_address(run.pk))
    return _page(request, site, form, _found(request, form))


def _chosen(request: HttpRequest, wanted: Wanted) -> list[Chosen]:
    if "all" in request.POST:
        return matches_all(wanted, embedder=embedder(), most=MAX_ITEMS + 1)
    return [
        (kind, UUID(key))
        for kind, _colon, key in (each.partition(":") for each in request.POST.getlist("chosen"))
        if kind in (MEMORY, MESSAGE)
    ]


def _found(request: HttpRequest, form: SearchForm) -> Matches | None:
    try:
        found = matches_find(form.wanted(), embedder=embedder())
    except TooSlowError:
        messages.error(request, _too_slow())
        return None
    chat = form.cleaned_data["chat"]
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        details={"list": "forget search", "searched": True},
        chat_id=chat.pk if chat else None,
    )
    return found


def _too_slow() -> str:
    return _("That takes too long over everything. Name a chat or dates.")


def _page(
    request: HttpRequest, site: dict[str, Any], form: SearchForm, found: Matches | None
) -> HttpResponse:
    shown = found.shown if found else []
    names = Chat.objects.in_bulk({each.chat_id for each in shown if each.chat_id})
    pages = {MEMORY: "memories_app_memory", MESSAGE: "sessions_app_message"}
    context = {
        **site,
        "title": _("Search and erase"),
        "opts": ForgetRun._meta,
        "form": form,
        "found": found,
        "hits": [
            {
                "match": each,
                "value": f"{each.kind}:{each.key}",
                "address": reverse(f"admin:{pages[each.kind]}_change", args=[each.key]),
                "kind": _("memory") if each.kind == MEMORY else _("message"),
                "chat": names.get(each.chat_id) if each.chat_id else None,
            }
            for each in shown
        ],
        "most": MAX_ITEMS,
    }
    return TemplateResponse(request, TEMPLATE, context)


# Build the addresses of the pages of forgetting, and check who may open them.

FORGET = "sessions_app.forget"
READ = ("sessions_app.view_message", "memories_app.view_memory")


def run_address(run_id: UUID) -> str:
    """Return the address of the page with a run's preview, progress and outcome."""
    return reverse("admin:sessions_app_forgetrun_change", args=[run_id])


def forget_required(request: HttpRequest) -> None:
    """Raise PermissionDenied unless the user may forget."""
    if not request.user.has_perm(FORGET):
        raise PermissionDenied


def may_read(request: HttpRequest) -> bool:
    """Return whether the user may read texts; otherwise only their number is shown."""
    return bool(request.user.has_perms(READ))


# Forget objects from the lists of the admin.

KINDS: dict[type[Any], str] = {
    Memory: str(ForgottenKind.MEMORY),
    Message: str(ForgottenKind.MESSAGE),
    ChatSession: str(ForgottenKind.SESSION),
    Chat: str(ForgottenKind.CHAT),
    SourceDocument: str(ForgottenKind.DOCUMENT),
}


class ForgetAction(ReadOnlyAdmin):
    """Mixin for a list in which staff select objects to forget.

    They can select one, several, or all that the list's search and filters found.
    """

    unbounded_actions: Collection[str] = ("forget_selected",)

    def has_forget_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(FORGET))

    @admin.action(description=gettext_lazy("Erase…"), permissions=["forget"])
    def forget_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Store the selection as a draft and show what would go."""
        kind = KINDS[self.model]
        keys = list(queryset.order_by().values_list("pk", flat=True)[: MAX_ITEMS + 1])
        if not keys:
            # Another person forgot it while the list was open, or it no longer matches the filter.
            text = _("What was chosen isn't in the list any more.")
            self.message_user(request, text, messages.WARNING)
            return None
        try:
            run = run_draft(
                chosen=[(kind, key) for key in keys], asked_by=request.user.get_username()
            )
        except TooManyError:
            text = _("At most {most} are erased at once. Narrow the list by a filter first.")
            self.message_user(request, text.format(most=MAX_ITEMS), messages.ERROR)
            return None
        return redirect(run_address(run.pk))
