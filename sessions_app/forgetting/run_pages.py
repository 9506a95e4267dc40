"""Show a run of forgetting: its preview, its confirmation, its progress and its outcome."""

from collections.abc import Collection
from typing import Any, ClassVar
from uuid import UUID

from django import http
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit import display, staff_admin, staff_pages
from memoryproject.foundation.audit.audit_events import Event, audit_record_many, staff_actor
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.preview_recorder import Change, ChangeKind, PreviewRecorder
from sessions_app.forgetting.choose_pages import (
    FORGET,
    READ,
    TEMPLATES,
    ConfirmForm,
    choose_page,
    export_page,
    person_page,
    run_address,
    search_page,
)
from sessions_app.forgetting.dependencies import build_forget_dependencies, enqueue_forgetting
from sessions_app.forgetting.receipt_pages import run_document, swept_words, text_answer
from sessions_app.forgetting.runs import chats_of, preview_make, run_confirm
from sessions_app.models import ForgetRun
from sessions_app.models.receipts import OPEN_RUNS, TROUBLES, ItemState, RunState

RUN = f"{TEMPLATES}/run.html"
ITEMS_A_PAGE = 100


@admin.register(ForgetRun)
class ForgetRunAdmin(staff_admin.ReadOnlyAdmin):
    """Admin of the runs. Users who may forget see all runs, but only their own drafts."""

    list_title = gettext_lazy("Erase data")
    change_list_template = "admin/sessions_app/forgetrun/change_list.html"
    list_display = ("created_at", "asked_by", "shown_state", "shown_done", "failed", "finished_at")
    list_filter = ("state", "created_at")
    ordering = ("-created_at", "-run_id")

    own_pages: ClassVar[Any] = {
        "search": staff_pages.OwnPage("search/", search_page, "GET HEAD POST"),
        "choose": staff_pages.OwnPage("search/choose/", choose_page, "POST"),
        "person": staff_pages.OwnPage("person/<uuid:chat_id>/", person_page, "GET HEAD POST"),
        "export": staff_pages.OwnPage("person/<uuid:chat_id>/export/", export_page, "GET"),
        "confirm": staff_pages.OwnPage("<uuid:run_id>/confirm/", "confirm", "POST"),
        "progress": staff_pages.OwnPage("<uuid:run_id>/progress/", "progress", "GET"),
        "receipts": staff_pages.OwnPage("<uuid:run_id>/receipts/", "receipts", "GET HEAD"),
        "text": staff_pages.OwnPage("<uuid:run_id>/text/", "text", "GET HEAD"),
    }

    def has_view_permission(self, request: http.HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(FORGET))

    def has_module_permission(self, request: http.HttpRequest) -> bool:
        """Return whether the user may forget; otherwise the app's other lists decide."""
        return bool(request.user.has_perm(FORGET)) or super().has_module_permission(request)

    def get_queryset(self, request: http.HttpRequest) -> QuerySet[ForgetRun]:
        drafts_of_others = Q(state=RunState.DRAFT) & ~Q(asked_by=request.user.get_username())
        runs: QuerySet[ForgetRun] = super().get_queryset(request)
        return runs.exclude(drafts_of_others)

    @admin.display(description=gettext_lazy("state"), ordering="state")
    def shown_state(self, run: ForgetRun) -> str:
        is_good = run.state == str(RunState.DONE) and not run.failed
        return display.shown_mark(run.get_state_display(), "good" if is_good else "")

    @admin.display(description=gettext_lazy("done"))
    def shown_done(self, run: ForgetRun) -> str:
        return _("{done} of {total}").format(done=run.done, total=run.total)

    def change_view(
        self,
        request: http.HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> http.HttpResponseBase:
        """Show the page of one run."""
        staff_pages.rights_required(request, FORGET)
        if request.method not in ("GET", "HEAD"):
            # A run is changed only by its confirmation.
            raise PermissionDenied
        return self.run_page(request, self._run(request, object_id))

    def confirm(self, request: http.HttpRequest, run_id: UUID) -> http.HttpResponseBase:
        """Start the run if the confirmation was typed correctly."""
        run = self._run(request, run_id)
        if run.state == str(RunState.DRAFT):
            form = ConfirmForm(request.POST, run=run)
            if not form.is_valid():
                return self.run_page(request, run, form)
            run_confirm(
                run_id=run.pk,
                actor=staff_actor(request),
                enqueue=enqueue_forgetting,
                requester=form.cleaned_data["requester"],
                request_number=form.cleaned_data["request_number"],
            )
        return redirect(run_address(run.pk))

    def progress(self, request: http.HttpRequest, run_id: UUID) -> http.HttpResponse:
        """Return the progress for an open page."""
        run = self._run(request, run_id)
        progress = {
            "done": run.done,
            "total": run.total,
            "over": run.state not in OPEN_RUNS,
            "text": self.shown_done(run),
        }
        return http.JsonResponse(progress, headers={"Cache-Control": "no-store"})

    def receipts(self, request: http.HttpRequest, run_id: UUID) -> http.HttpResponse:
        """Show all receipts of a run on one page, to print."""
        run = self._run(request, run_id)
        document = run_document(run)
        context = {
            "document": document,
            "text_address": reverse("admin:sessions_app_forgetrun_text", args=[run.pk]),
            "run_address": run_address(run.pk),
        }
        return staff_pages.staff_page(
            request, f"{TEMPLATES}/receipts.html", document.title, context, of=self.model
        )

    def text(self, request: http.HttpRequest, run_id: UUID) -> http.HttpResponse:
        """Return all receipts of a run as plain text."""
        run = self._run(request, run_id)
        return text_answer(run_document(run), f"receipts-{run.pk}")

    def _run(self, request: http.HttpRequest, run_id: Any) -> ForgetRun:
        staff_pages.rights_required(request, FORGET)
        return get_object_or_404(self.get_queryset(request), pk=uuid_or_none(str(run_id)))

    def run_page(
        self, request: http.HttpRequest, run: ForgetRun, form: ConfirmForm | None = None
    ) -> http.HttpResponseBase:
        """Show a draft with everything that would go, or the outcome of a run.

        ``form`` holds a confirmation that was typed wrong.
        """
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "run": run,
            "title": _title(run),
            "may_read": request.user.has_perms(READ),
        }
        if run.state == str(RunState.DRAFT):
            return _draft_page(request, run, form, context)
        return TemplateResponse(request, RUN, {**context, **_results(request, run)})


def _title(run: ForgetRun) -> str:
    titles = {
        str(RunState.DRAFT): _("Preview"),
        str(RunState.WAITING): _("Erasing"),
        str(RunState.RUNNING): _("Erasing"),
        str(RunState.DONE): _("Erased"),
    }
    return titles[run.state] if not run.failed else _("Not everything was erased")


def _draft_page(
    request: http.HttpRequest, run: ForgetRun, typed: ConfirmForm | None, context: dict[str, Any]
) -> http.StreamingHttpResponse:
    """Stream the page of a draft: the selection first, because the preview takes time."""
    form = typed or ConfirmForm(run=run)
    return staff_pages.late_page(
        request,
        RUN,
        {**context, "form": form, "person": form.person},
        late=lambda: (f"{TEMPLATES}/draft.html", _draft(request, run)),
        status=400 if typed is not None else 200,
    )


def _draft(request: http.HttpRequest, run: ForgetRun) -> dict[str, Any]:
    chosen = list(run.items.order_by("number").values_list("kind", "object_id"))
    preview = preview_make(chosen=chosen, dependencies=build_forget_dependencies())
    readable = request.user.has_perms(READ)
    if readable:
        _record_read(request, run, chats_of(chosen))
    return {
        "preview": preview,
        "tables": swept_words(preview.tables),
        "sections": _sections(preview.recorder) if readable else [],
        "gone": run.total - preview.there,
    }


def _record_read(request: http.HttpRequest, run: ForgetRun, chats: Collection[UUID]) -> None:
    """Audit the read once for each person whose texts were shown, so that it is found by person."""
    people: Collection[UUID | None] = chats or [None]
    events = [
        Event(
            "conversation.read",
            staff_actor(request),
            "forget run",
            run.pk,
            details={"list": "forget preview"},
            chat_id=chat,
        )
        for chat in people
    ]
    audit_record_many(events=events)


def _results(request: http.HttpRequest, run: ForgetRun) -> dict[str, Any]:
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

TITLES = read_table(__file__, "receipt_words.yaml")["changes"]
PAGES = {
    ChangeKind.MEMORY: "memories_app_memory",
    ChangeKind.DOCUMENT: "memories_app_sourcedocument",
    ChangeKind.MESSAGE: "sessions_app_message",
    ChangeKind.ANSWER: "sessions_app_message",
    ChangeKind.COMMAND: "sessions_app_message",
    ChangeKind.QUOTE: "sessions_app_message",
    ChangeKind.REPLAY: "sessions_app_turn",
}


def _sections(recorder: PreviewRecorder) -> list[dict[str, Any]]:
    """Return the headings with their texts, in the order of the kinds, without the empty ones."""
    return [
        {
            "title": TITLES[kind.value],
            "count": recorder.counts[kind],
            "lines": [
                {"text": each.text, "left": each.left, "address": _address(kind, each)}
                for each in recorder.changes[kind]
            ],
            "more": recorder.counts[kind] - len(recorder.changes[kind]),
        }
        for kind in ChangeKind
        if recorder.counts[kind]
    ]


def _address(kind: ChangeKind, each: Change) -> str:
    page = PAGES.get(kind)
    return reverse(f"admin:{page}_change", args=[each.key]) if page else ""
