"""Serve the pages on which staff choose what to erase: a search, a person, the lists' action."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryproject.foundation.admin_kit.list_csv import as_download
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from memoryproject.foundation.time_limit import TooSlowError
from sessions_app.embedding.facade import embedder
from sessions_app.forgetting.admin.forms import SearchForm
from sessions_app.forgetting.deletion_plan import MODELS
from sessions_app.forgetting.find_matches import (
    MEMORY,
    MESSAGE,
    Matches,
    matches_all,
    matches_find,
)
from sessions_app.forgetting.person_export import person_export
from sessions_app.forgetting.runs import MAX_ITEMS, Chosen, TooManyError, run_draft
from sessions_app.models import Chat, ForgetRun, ForgottenKind
from sessions_app.presentation.chat_page import chat_or_404

TEMPLATES = "admin/sessions_app/forgetrun"
FORGET = "sessions_app.forget"
READ = ("sessions_app.view_message", "memories_app.view_memory")
EXPORT = (*READ, "memories_app.export_memory")

# The kinds that staff choose in lists; the messages of a session are none of its own.
KINDS = {model: kind for kind, model in MODELS.items() if kind != str(ForgottenKind.MESSAGES)}


def rights_required(request: HttpRequest, *rights: str) -> None:
    """Raise PermissionDenied unless the user has these rights."""
    if not request.user.has_perms(rights):
        raise PermissionDenied


def run_address(run_id: UUID) -> str:
    """Return the address of the page with a run's preview, progress and outcome."""
    return reverse("admin:sessions_app_forgetrun_change", args=[run_id])


def _draft(request: HttpRequest, chosen: Iterable[Chosen]) -> HttpResponse:
    """Store the choice as a draft, and redirect to its preview. Raises TooManyError, ValueError."""
    run = run_draft(chosen=chosen, asked_by=request.user.get_username())
    return redirect(run_address(run.pk))


@require_http_methods(["GET", "HEAD", "POST"])
def search_page(request: HttpRequest) -> HttpResponse:
    """Search by POST, so that the search text is in no address and no log."""
    rights_required(request, FORGET, *READ)
    form = SearchForm(request.POST) if request.method == "POST" else SearchForm()
    return _search_page(request, form)


@require_POST
def choose_page(request: HttpRequest) -> HttpResponse:
    """Store the selected results, or all of them, as a draft."""
    rights_required(request, FORGET, *READ)
    form = SearchForm(request.POST)
    if form.is_valid():
        try:
            return _draft(request, _chosen(request, form))
        except TooManyError:
            text = _("At most {most} are erased at once. Narrow the search first.")
            messages.error(request, text.format(most=MAX_ITEMS))
        except TooSlowError:
            messages.error(request, _too_slow())
        except ValueError:
            messages.error(request, _("Nothing is chosen."))
    return _search_page(request, form)


def _chosen(request: HttpRequest, form: SearchForm) -> list[Chosen]:
    if "all" in request.POST:
        return matches_all(form.wanted(), embedder=embedder(), most=MAX_ITEMS + 1)
    return [
        (kind, UUID(key))
        for kind, _colon, key in (each.partition(":") for each in request.POST.getlist("chosen"))
        if kind in (MEMORY, MESSAGE)
    ]


def _found(request: HttpRequest, form: SearchForm) -> Matches | None:
    """Return what a valid form finds, and audit that its texts were shown."""
    if not form.is_bound or not form.is_valid():
        return None
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


def _search_page(request: HttpRequest, form: SearchForm) -> HttpResponse:
    found = _found(request, form)
    shown = found.shown if found else []
    names = Chat.objects.in_bulk({each.chat_id for each in shown if each.chat_id})
    pages = {MEMORY: "memories_app_memory", MESSAGE: "sessions_app_message"}
    context = {
        **admin.site.each_context(request),
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
    return TemplateResponse(request, f"{TEMPLATES}/search.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def person_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Show the person, to export first. A POST creates the draft and redirects to its preview."""
    rights_required(request, FORGET)
    chat = chat_or_404(chat_id)
    if request.method == "POST":
        return _draft(request, [(str(ForgottenKind.CHAT), chat.pk)])
    context = {
        **admin.site.each_context(request),
        "title": _("Erase a whole person") if not chat.is_group else _("Erase a whole group"),
        "chat": chat,
        "opts": ForgetRun._meta,
        "may_export": request.user.has_perms(EXPORT),
    }
    return TemplateResponse(request, f"{TEMPLATES}/person.html", context)


@require_GET
def export_page(request: HttpRequest, chat_id: UUID) -> StreamingHttpResponse:
    """Return everything stored about the person as a download."""
    rights_required(request, *EXPORT)
    chat = chat_or_404(chat_id)
    lines = person_export(chat=chat, actor=staff_actor(request))
    answer = StreamingHttpResponse(
        (f"{line}\n" for line in lines), content_type="application/x-ndjson; charset=utf-8"
    )
    return as_download(answer, f"person-{chat.pk}.ndjson")


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
        keys = queryset.order_by().values_list("pk", flat=True)[: MAX_ITEMS + 1]
        try:
            return _draft(request, [(kind, key) for key in keys])
        except TooManyError:
            text = _("At most {most} are erased at once. Narrow the list by a filter first.")
            self.message_user(request, text.format(most=MAX_ITEMS), messages.ERROR)
        except ValueError:
            # Another person forgot it while the list was open, or it no longer matches the filter.
            text = _("What was chosen isn't in the list any more.")
            self.message_user(request, text, messages.WARNING)
        return None
