"""Let staff merge two contacts, split addresses off one, or undo a merge: preview, then confirm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories_app.models import MemoryStatus
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.admin_kit.staff_pages import rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.contacts.contact_list import alike_contacts, contact_rows, contacts_found
from sessions_app.contacts.contact_pages import MERGE, contact_name
from sessions_app.contacts.merge_rows import compared, warnings_of
from sessions_app.contacts.readable_export import addresses_of
from sessions_app.history.dependencies import build_chat_memory
from sessions_app.inbox.filters_page import MAX_QUERY_LENGTH
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.merging.merge_chats import (
    MergeError,
    MergePreview,
    SeenChangedError,
    contacts_merge,
    merge_preview,
)
from sessions_app.merging.split_contact import (
    SplitPreview,
    contact_split,
    merge_undo,
    split_preview,
    undo_preview,
)
from sessions_app.models import Chat, ContactMerge
from sessions_app.presentation.links import chat_or_404, contact_address
from sessions_app.turns.facade import answer_soon

FIND = "admin/contacts/merge_find.html"
PREVIEW = "admin/contacts/merge.html"
SHOWN = 20


def merge_find_page(request: HttpRequest, chat_id: UUID) -> TemplateResponse:
    """Search for the contact to merge with, as the list of contacts does.

    Without ``?q=`` it shows the contacts of the same name.
    """
    chat = contact_to_merge(request, chat_id)
    query = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    today = build_usage_limits().day_of(timezone.now())
    found = contacts_found(query, today=today) if query else alike_contacts(chat)
    people = list(found.exclude(pk=chat.pk)[: SHOWN + 1])
    context = {
        "chat": chat,
        "name": contact_name(chat),
        "query": query,
        "longest": MAX_QUERY_LENGTH,
        "rows": contact_rows(people[:SHOWN], with_sessions=True, with_memories=True),
        "more": len(people) > SHOWN,
    }
    return staff_page(request, FIND, _("Merge with another contact"), context, of=Chat)


def merge_page(request: HttpRequest, chat_id: UUID, other_id: UUID) -> HttpResponse:
    """Show what the merge would do. A POST does it, unless the preview would be another one now."""
    chat, other = contact_to_merge(request, chat_id), chat_or_404(other_id)
    problem = ""
    if request.method == "POST":
        try:
            return _merge(request, chat, other)
        except SeenChangedError as error:
            problem = str(error)
        except MergeError as error:
            messages.error(request, str(error))
            return redirect("admin:contact_merge_find", chat_id)
    try:
        preview = merge_preview(chat, other, chat_memory=build_chat_memory())
    except MergeError as error:
        messages.error(request, str(error))
        return redirect("admin:contact_merge_find", chat_id)
    context = {**_merge_shown(request, chat, preview), "problem": problem}
    return staff_page(request, PREVIEW, _("Merge two contacts"), context, of=Chat)


def _merge_shown(request: HttpRequest, chat: Chat, preview: MergePreview) -> dict[str, Any]:
    staff_names = [preview.kept.chat.staff_name, preview.gone.chat.staff_name]
    usual = next(filter(None, [*staff_names, *preview.names]), "")
    return {
        "chat": chat,
        "name": contact_name(chat),
        "kept_name": contact_name(preview.kept.chat),
        "gone_name": contact_name(preview.gone.chat),
        "preview": preview,
        "rows": compared(preview),
        "warnings": warnings_of(preview),
        "chosen": request.POST.get("name", usual),
    }


def _merge(request: HttpRequest, chat: Chat, other: Chat) -> HttpResponse:
    merged = contacts_merge(
        one=chat.pk,
        other=other.pk,
        name=request.POST.get("name", ""),
        seen=request.POST.get("seen", ""),
        actor=staff_actor(request),
        chat_memory=build_chat_memory(),
    )
    # Answers that a worker had begun in the contact that is gone wait in the merged one.
    answer_soon(merged.pk)
    messages.success(request, _("The two contacts are one now."))
    return redirect(contact_address(merged.pk))


def contact_to_merge(request: HttpRequest, chat_id: UUID) -> Chat:
    """Return the contact, for who may merge and split contacts.

    Raises PermissionDenied and Http404.
    """
    rights_required(request, *MERGE)
    return chat_or_404(chat_id)


# Split addresses off a contact, or undo a merge.


CHOOSE = "admin/contacts/split_choose.html"
SPLIT = "admin/contacts/split.html"
MAX_NAME = 255
SHOWN_MEMORIES = 20


def split_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Let staff choose addresses (``?address=``), show what goes with them, and split on POST."""
    chat = contact_to_merge(request, chat_id)
    chosen = request.POST if request.method == "POST" else request.GET
    keys = {int(key) for key in chosen.getlist("address") if key.isdecimal() and len(key) < 19}
    if not keys:
        return _choose(request, chat)

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

    return _previewed(request, chat, preview, split)


def undo_page(request: HttpRequest, merge_id: UUID) -> HttpResponse:
    """Show what would go back to the contact that was merged into this one; a POST undoes it."""
    rights_required(request, *MERGE)
    record = get_object_or_404(ContactMerge.objects.select_related("chat"), pk=merge_id)

    def undo() -> Chat:
        seen = request.POST.get("seen", "")
        return merge_undo(merge_id=merge_id, seen=seen, actor=staff_actor(request))

    return _previewed(request, record.chat, lambda: undo_preview(record), undo)


def _previewed(
    request: HttpRequest, chat: Chat, read: Callable[[], SplitPreview], split: Callable[[], Chat]
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
    # The preview shows what was remembered of the person.
    staff_read_record(request, "chat", chat.pk, chat_id=chat.pk, page="split")
    context = {**_split_shown(preview), "problem": problem}
    title = _("Undo a merge") if preview.record else _("Split off an address")
    return staff_page(request, SPLIT, title, context, of=Chat)


def _done(request: HttpRequest, chat: Chat, gone: Chat) -> HttpResponse:
    for key in (chat.pk, gone.pk):
        # Answers that a worker had begun wait where they belong now.
        answer_soon(key)
    messages.success(request, _("These are two contacts now."))
    return redirect(contact_address(gone.pk))


def _choose(request: HttpRequest, chat: Chat) -> HttpResponse:
    context = {"chat": chat, "name": contact_name(chat), "addresses": addresses_of(chat)}
    return staff_page(request, CHOOSE, _("Split off an address"), context, of=Chat)


def _split_shown(preview: SplitPreview) -> dict[str, Any]:
    chat, record = preview.chat, preview.record
    memories = memories_for_staff().filter(pk__in=list(preview.portion.memories))
    in_force = memories.exclude(status=MemoryStatus.SUPERSEDED).defer("terms", "likeness")
    return {
        "chat": chat,
        "name": contact_name(chat),
        "preview": preview,
        "record": record,
        "wrote": [(number_shown(use.address), use) for use in preview.wrote()],
        "memories": in_force.order_by("-created_at", "memory_id")[:SHOWN_MEMORIES],
        "longest": MAX_NAME,
    }
