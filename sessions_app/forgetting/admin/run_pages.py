"""Show a run of forgetting: its preview, its confirmation, its progress and its outcome."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST, require_safe

from memoryproject.foundation.admin_kit.display import shown_state
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.admin_kit.streamed_page import late_page
from memoryproject.foundation.audit.audit_events import Event, audit_record_many, staff_actor
from sessions_app.conversations.facade import Change, ChangeKind, PreviewRecorder
from sessions_app.forgetting.admin.forms import ConfirmForm
from sessions_app.forgetting.admin.person_page import export_page, person_page
from sessions_app.forgetting.admin.receipt_pages import text_answer
from sessions_app.forgetting.admin.search_page import (
    FORGET,
    choose_page,
    forget_required,
    may_read,
    run_address,
    search_page,
)
from sessions_app.forgetting.dependencies import build_forget_dependencies, enqueue_forgetting
from sessions_app.forgetting.preview import preview_make
from sessions_app.forgetting.receipt_document import run_document, swept_words
from sessions_app.forgetting.runs import chats_of, run_confirm
from sessions_app.models import ForgetRun
from sessions_app.models.receipts import OPEN_RUNS, TROUBLES, ItemState, RunState

TEMPLATE = "admin/sessions_app/forgetrun/run.html"
DRAFT = "admin/sessions_app/forgetrun/draft.html"
RECEIPTS = "admin/sessions_app/forgetrun/receipts.html"
ITEMS_A_PAGE = 100


@admin.register(ForgetRun)
class ForgetRunAdmin(ReadOnlyAdmin):
    """Admin of the runs. Users who may forget see all runs, but only their own drafts."""

    list_title = gettext_lazy("Erase data")
    change_list_template = "admin/sessions_app/forgetrun/change_list.html"
    list_display = ("created_at", "asked_by", "shown_state", "shown_done", "failed", "finished_at")
    list_filter = ("state", "created_at")
    ordering = ("-created_at", "-run_id")

    def get_urls(self) -> list[Any]:
        pages: dict[str, tuple[str, Any]] = {
            "search": ("search/", self.search),
            "choose": ("search/choose/", self.choose),
            "person": ("person/<uuid:chat_id>/", self.person),
            "export": ("person/<uuid:chat_id>/export/", self.export),
            "confirm": ("<uuid:run_id>/confirm/", self.confirm),
            "progress": ("<uuid:run_id>/progress/", self.progress),
            "receipts": ("<uuid:run_id>/receipts/", require_safe(self.receipts)),
            "text": ("<uuid:run_id>/text/", require_safe(self.text)),
        }
        own = [
            path(route, self.admin_site.admin_view(view), name=f"sessions_app_forgetrun_{name}")
            for name, (route, view) in pages.items()
        ]
        return [*own, *super().get_urls()]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(FORGET))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may forget; otherwise the app's other lists decide."""
        return bool(request.user.has_perm(FORGET)) or super().has_module_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ForgetRun]:
        drafts_of_others = Q(state=RunState.DRAFT) & ~Q(asked_by=request.user.get_username())
        runs: QuerySet[ForgetRun] = super().get_queryset(request)
        return runs.exclude(drafts_of_others)

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def shown_state(self, run: ForgetRun) -> str:
        shown = str(run.get_state_display())
        is_good = run.state == str(RunState.DONE) and not run.failed
        return shown_state(shown, good=[shown] if is_good else [])

    @admin.display(description=gettext_lazy("done"))
    def shown_done(self, run: ForgetRun) -> str:
        return _("{done} of {total}").format(done=run.done, total=run.total)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponseBase:
        """Show the page of one run."""
        forget_required(request)
        if request.method not in ("GET", "HEAD"):
            # A run is changed only by its confirmation.
            raise PermissionDenied
        return self.run_page(request, self._run(request, object_id))

    def search(self, request: HttpRequest) -> HttpResponse:
        return search_page(request, self.admin_site.each_context(request))

    def choose(self, request: HttpRequest) -> HttpResponse:
        return choose_page(request, self.admin_site.each_context(request))

    def person(self, request: HttpRequest, chat_id: UUID) -> HttpResponse:
        return person_page(request, chat_id, self.admin_site.each_context(request))

    def export(self, request: HttpRequest, chat_id: UUID) -> StreamingHttpResponse:
        return export_page(request, chat_id)

    def confirm(self, request: HttpRequest, run_id: UUID) -> HttpResponseBase:
        """Start the run if the confirmation was typed correctly."""
        forget_required(request)
        return _confirm(request, self, self._run(request, run_id))

    def progress(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        """Return the progress for an open page."""
        forget_required(request)
        return _progress(request, self._run(request, run_id))

    def receipts(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        """Show all receipts of a run on one page, to print."""
        forget_required(request)
        run = self._run(request, run_id)
        document = run_document(run)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": document.title,
            "document": document,
            "text_address": reverse("admin:sessions_app_forgetrun_text", args=[run.pk]),
            "run_address": run_address(run.pk),
        }
        return TemplateResponse(request, RECEIPTS, context)

    def text(self, request: HttpRequest, run_id: UUID) -> HttpResponse:
        """Return all receipts of a run as plain text."""
        forget_required(request)
        run = self._run(request, run_id)
        return text_answer(run_document(run), f"receipts-{run.pk}")

    def _run(self, request: HttpRequest, run_id: Any) -> ForgetRun:
        try:
            run = self.get_queryset(request).filter(pk=UUID(str(run_id))).first()
        except ValueError:
            run = None
        if run is None:
            raise Http404(_("There is no such choice, or not any more."))
        return run

    def run_page(
        self, request: HttpRequest, run: ForgetRun, form: ConfirmForm | None = None
    ) -> HttpResponseBase:
        """Show a draft with everything that would go, or the outcome of a run.

        ``form`` holds a confirmation that was typed wrong.
        """
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "run": run,
            "title": _title(run),
            "may_read": may_read(request),
        }
        if run.state == str(RunState.DRAFT):
            return _draft_page(request, run, form, context)
        return TemplateResponse(request, TEMPLATE, {**context, **_results(request, run)})


def _title(run: ForgetRun) -> str:
    titles = {
        str(RunState.DRAFT): _("Preview"),
        str(RunState.WAITING): _("Erasing"),
        str(RunState.RUNNING): _("Erasing"),
        str(RunState.DONE): _("Erased"),
    }
    return titles[run.state] if not run.failed else _("Not everything was erased")


@require_POST
def _confirm(request: HttpRequest, page: ForgetRunAdmin, run: ForgetRun) -> HttpResponseBase:
    if run.state != str(RunState.DRAFT):
        return redirect(run_address(run.pk))
    form = ConfirmForm(request.POST, run=run)
    if not form.is_valid():
        return page.run_page(request, run, form)
    run_confirm(
        run_id=run.pk,
        actor=staff_actor(request),
        enqueue=enqueue_forgetting,
        requester=form.cleaned_data["requester"],
        request_number=form.cleaned_data["request_number"],
    )
    return redirect(run_address(run.pk))


@require_GET
def _progress(request: HttpRequest, run: ForgetRun) -> HttpResponse:
    progress = {
        "done": run.done,
        "total": run.total,
        "over": run.state not in OPEN_RUNS,
        "text": _("{done} of {total}").format(done=run.done, total=run.total),
    }
    return JsonResponse(progress, headers={"Cache-Control": "no-store"})


def _draft_page(
    request: HttpRequest, run: ForgetRun, typed: ConfirmForm | None, context: dict[str, Any]
) -> StreamingHttpResponse:
    """Stream the page of a draft: the selection first, because the preview takes time."""
    form = typed or ConfirmForm(run=run)
    return late_page(
        request,
        TEMPLATE,
        {**context, "form": form, "person": form.person},
        late=lambda: (DRAFT, _draft(request, run)),
        status=400 if typed is not None else 200,
    )


def _draft(request: HttpRequest, run: ForgetRun) -> dict[str, Any]:
    chosen = list(run.items.order_by("number").values_list("kind", "object_id"))
    preview = preview_make(chosen=chosen, dependencies=build_forget_dependencies())
    readable = may_read(request)
    if readable:
        _record_read(request, run, chats_of(chosen))
    return {
        "preview": preview,
        "tables": swept_words(preview.tables),
        "sections": preview_shown(preview.recorder) if readable else [],
        "gone": run.total - preview.there,
    }


def _record_read(request: HttpRequest, run: ForgetRun, chats: Collection[UUID]) -> None:
    """Audit the read once for each person whose texts were shown, so that it is found by person."""
    people: Collection[UUID | None] = chats or [None]
    events = [
        Event(
            action="conversation.read",
            actor=staff_actor(request),
            object_type="forget run",
            object_id=run.pk,
            details={"list": "forget preview"},
            chat_id=chat,
        )
        for chat in people
    ]
    audit_record_many(events=events)


def _results(request: HttpRequest, run: ForgetRun) -> dict[str, Any]:
    items = run.items.select_related("receipt").order_by("number")
    troubles = items.filter(state__in=TROUBLES)
    page = Paginator(items, ITEMS_A_PAGE).get_page(request.GET.get("p"))
    return {
        "open": run.state in OPEN_RUNS,
        "page": page,
        "troubles": troubles[:ITEMS_A_PAGE],
        "gone": items.filter(state=ItemState.GONE).count(),
    }


# Prepare the texts of a preview for the page.

TITLES: dict[ChangeKind, Any] = {
    ChangeKind.MEMORY: gettext_lazy("Memories to erase"),
    ChangeKind.DOCUMENT: gettext_lazy("Documents to erase"),
    ChangeKind.MESSAGE: gettext_lazy("Messages to erase"),
    ChangeKind.ANSWER: gettext_lazy("Answers that are cut"),
    ChangeKind.COMMAND: gettext_lazy("Commands of which only the name stays"),
    ChangeKind.QUOTE: gettext_lazy("Quotes to erase; the messages around them stay"),
    ChangeKind.SUMMARY: gettext_lazy("Summaries to be rewritten from what remains"),
    ChangeKind.CARD: gettext_lazy("Memory cards to be rebuilt from what remains"),
    ChangeKind.NOTE: gettext_lazy("Staff notes to erase or shorten"),
    ChangeKind.REPLAY: gettext_lazy("Replays of answers that are cleaned"),
    ChangeKind.PART: gettext_lazy("Answers on their way that are cut"),
    ChangeKind.DELIVERY: gettext_lazy("Raw deliveries that are emptied"),
}
PAGES = {
    ChangeKind.MEMORY: "memories_app_memory",
    ChangeKind.DOCUMENT: "memories_app_sourcedocument",
    ChangeKind.MESSAGE: "sessions_app_message",
    ChangeKind.ANSWER: "sessions_app_message",
    ChangeKind.COMMAND: "sessions_app_message",
    ChangeKind.QUOTE: "sessions_app_message",
    ChangeKind.REPLAY: "sessions_app_turn",
}


@dataclass(frozen=True)
class Line:
    text: str
    left: str
    address: str


@dataclass(frozen=True)
class Section:
    """A heading with the texts to show; ``more`` is the number of texts that aren't shown."""

    title: Any
    count: int
    lines: Sequence[Line]
    more: int


def preview_shown(recorder: PreviewRecorder) -> list[Section]:
    """Return the sections in the order of the kinds, without the empty ones."""
    return [_section(kind, recorder) for kind in ChangeKind if recorder.counts[kind]]


def _section(kind: ChangeKind, recorder: PreviewRecorder) -> Section:
    changes = recorder.changes[kind]
    lines = [Line(each.text, each.left, _address(kind, each)) for each in changes]
    count = recorder.counts[kind]
    return Section(TITLES[kind], count, lines, count - len(lines))


def _address(kind: ChangeKind, each: Change) -> str:
    page = PAGES.get(kind)
    return reverse(f"admin:{page}_change", args=[each.key]) if page else ""
