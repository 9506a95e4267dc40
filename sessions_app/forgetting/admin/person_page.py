"""Serve the page that forgets a whole person: export first, then preview what would go."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from memoryproject.foundation.admin_kit.list_csv import as_download
from memoryproject.foundation.audit.audit_events import staff_actor
from sessions_app.forgetting.admin.search_page import READ, forget_required, run_address
from sessions_app.forgetting.person_export import person_export
from sessions_app.forgetting.runs import run_draft
from sessions_app.models import ForgetRun, ForgottenKind
from sessions_app.presentation.chat_page import chat_or_404

EXPORT = (*READ, "memories_app.export_memory")
TEMPLATE = "admin/sessions_app/forgetrun/person.html"


@require_http_methods(["GET", "HEAD", "POST"])
def person_page(request: HttpRequest, chat_id: UUID, site: dict[str, Any]) -> HttpResponse:
    """Show the person. A POST creates the draft and redirects to its preview."""
    forget_required(request)
    chat = chat_or_404(chat_id)
    if request.method == "POST":
        chosen = [(str(ForgottenKind.CHAT), chat.pk)]
        run = run_draft(chosen=chosen, asked_by=request.user.get_username())
        return redirect(run_address(run.pk))
    context = {
        **site,
        "title": _("Erase a whole person") if not chat.is_group else _("Erase a whole group"),
        "chat": chat,
        "opts": ForgetRun._meta,
        "may_export": request.user.has_perms(EXPORT),
    }
    return TemplateResponse(request, TEMPLATE, context)


@require_GET
def export_page(request: HttpRequest, chat_id: UUID) -> StreamingHttpResponse:
    """Return everything stored about the person as a download."""
    if not request.user.has_perms(EXPORT):
        raise PermissionDenied
    chat = chat_or_404(chat_id)
    lines = person_export(chat=chat, actor=staff_actor(request))
    answer = StreamingHttpResponse(
        (f"{line}\n" for line in lines), content_type="application/x-ndjson; charset=utf-8"
    )
    return as_download(answer, f"person-{chat.pk}.ndjson")
