"""Let staff split addresses off a contact, or undo a merge: preview, then confirm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from memories_app.models import MemoryStatus
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.audit.audit_events import audit_record, staff_actor
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.contacts.admin.contact_page import MERGE, contact_name
from sessions_app.contacts.admin.merge_pages import contact_to_merge
from sessions_app.contacts.readable_export import addresses_of
from sessions_app.merging.facade import (
    MergeError,
    SeenChangedError,
    SplitPreview,
    contact_split,
    merge_undo,
    split_preview,
    undo_preview,
)
from sessions_app.models import Chat, ContactMerge
from sessions_app.presentation.chat_page import chat_or_404
from sessions_app.presentation.links import contact_address
from sessions_app.turns.facade import answer_soon

CHOOSE = "admin/contacts/split_choose.html"
PREVIEW = "admin/contacts/split.html"
MAX_NAME = 255
SHOWN_MEMORIES = 20


@require_http_methods(["GET", "HEAD", "POST"])
def split_page(request: HttpRequest, chat_id: UUID, site: dict[str, Any]) -> HttpResponse:
    """Let staff choose addresses (``?address=``), show what goes with them, and split on POST."""
    chat = contact_to_merge(request, chat_id)
    chosen = request.POST if request.method == "POST" else request.GET
    keys = {int(key) for key in chosen.getlist("address") if key.isdecimal() and len(key) < 19}
    if not keys:
        return _choose(request, chat, site)

    def split() -> Chat:
        return contact_split(
            chat_id=chat.pk,
            keys=keys,
            name=request.POST.get("name", "").replace("\x00", "").strip()[:MAX_NAME],
            seen=request.POST.get("seen", ""),
            actor=staff_actor(request),
        )

    def preview() -> SplitPreview:
        return split_preview(chat_or_404(chat_id), keys)

    return _previewed(request, chat, site, preview, split)


@require_http_methods(["GET", "HEAD", "POST"])
def undo_page(request: HttpRequest, merge_id: UUID, site: dict[str, Any]) -> HttpResponse:
    """Show what would go back to the contact that was merged into this one; a POST undoes it."""
    if not request.user.has_perms(MERGE):
        raise PermissionDenied
    record = ContactMerge.objects.filter(pk=merge_id).select_related("chat").first()
    if record is None:
        raise Http404(_("This merge was undone already."))

    def undo() -> Chat:
        seen = request.POST.get("seen", "")
        return merge_undo(merge_id=merge_id, seen=seen, actor=staff_actor(request))

    return _previewed(request, record.chat, site, lambda: undo_preview(record), undo)


def _previewed(
    request: HttpRequest,
    chat: Chat,
    site: dict[str, Any],
    read: Callable[[], SplitPreview],
    split: Callable[[], Chat],
) -> HttpResponse:
    """Show the preview. A POST splits, unless the preview would be another one now."""
    problem = ""
    try:
        if request.method == "POST":
            try:
                return _done(request, chat, split())
            except SeenChangedError as error:
                problem = str(error)
        preview = read()
    except MergeError as error:
        messages.error(request, str(error))
        return redirect(contact_address(chat.pk))
    _record(request, chat)
    context = {**site, **_shown(preview), "problem": problem}
    return TemplateResponse(request, PREVIEW, context)


def _done(request: HttpRequest, chat: Chat, gone: Chat) -> HttpResponse:
    for key in (chat.pk, gone.pk):
        # Answers that a worker had begun wait where they belong now.
        answer_soon(key)
    messages.success(request, _("These are two contacts now."))
    return redirect(contact_address(gone.pk))


def _choose(request: HttpRequest, chat: Chat, site: dict[str, Any]) -> HttpResponse:
    context = {
        **site,
        "title": _("Split off an address"),
        "opts": Chat._meta,
        "chat": chat,
        "name": contact_name(chat),
        "addresses": addresses_of(chat),
    }
    return TemplateResponse(request, CHOOSE, context)


def _shown(preview: SplitPreview) -> dict[str, Any]:
    chat, record = preview.chat, preview.record
    memories = memories_for_staff().filter(pk__in=list(preview.portion.memories))
    in_force = memories.exclude(status=MemoryStatus.SUPERSEDED).defer("terms", "likeness")
    return {
        "title": _("Undo a merge") if record else _("Split off an address"),
        "opts": Chat._meta,
        "chat": chat,
        "name": contact_name(chat),
        "preview": preview,
        "record": record,
        "wrote": [(number_shown(use.address), use) for use in preview.wrote()],
        "memories": in_force.order_by("-created_at", "memory_id")[:SHOWN_MEMORIES],
        "longest": MAX_NAME,
    }


def _record(request: HttpRequest, chat: Chat) -> None:
    """Record the read: the preview shows what was remembered of the person."""
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        object_type="chat",
        object_id=chat.pk,
        details={"page": "split"},
        chat_id=chat.pk,
    )
