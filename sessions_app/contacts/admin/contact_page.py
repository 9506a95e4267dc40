"""Serve the page of one person: who they are, and everything that is kept of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, StreamingHttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils import timezone, translation
from django.views.decorators.http import require_GET, require_safe

from memoryproject.foundation.audit.audit_events import audit_record, staff_actor, staff_events_of
from memoryproject.foundation.audit.words import action_shown
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.contacts.admin.list_page import SEE
from sessions_app.contacts.readable_export import (
    addresses_of,
    cards_of,
    documents_of,
    labels_of,
    memories_of,
    notes_of,
    readable_export,
    receipts_of_person,
    sessions_of,
)
from sessions_app.limits.presentation import access_context
from sessions_app.models import Chat, ChatActivity
from sessions_app.models.review import MAX_NOTE_LENGTH
from sessions_app.presentation.chat_page import chat_or_404
from sessions_app.presentation.links import conversation_address, list_address

TEMPLATE = "admin/contacts/contact.html"
EVENTS = 15
READ_MESSAGES = "sessions_app.view_message"
REVIEW = "sessions_app.review_chat"
MERGE = (SEE, "sessions_app.merge_chat", READ_MESSAGES, "memories_app.view_memory")
EXPORT = (READ_MESSAGES, "memories_app.view_memory", "memories_app.export_memory")
# Each block: the right that it needs, and what reads it.
BLOCKS: dict[str, tuple[str, Callable[[Chat], Any]]] = {
    "sessions": ("sessions_app.view_chatsession", lambda chat: sessions_of(chat.pk)),
    "memories": ("memories_app.view_memory", lambda chat: memories_of(chat.pk)),
    "documents": ("memories_app.view_sourcedocument", lambda chat: documents_of(chat.pk)),
    "cards": ("cards_app.view_memorycard", lambda chat: cards_of(chat.pk)),
    "notes": (READ_MESSAGES, lambda chat: notes_of(chat.pk)),
    "receipts": ("sessions_app.view_forgetreceipt", receipts_of_person),
    "events": ("audit.view_auditevent", lambda chat: _event_lines(chat.pk)),
}
# These show what people said, or what was said of them: opening the page is a read.
TEXTS = ("memories", "documents", "cards", "notes")


@require_safe
def contact_page(request: HttpRequest, chat_id: UUID, site: dict[str, Any]) -> TemplateResponse:
    """Show the person; each block only to those who may see its list."""
    if not request.user.has_perm(SEE):
        raise PermissionDenied
    chat = chat_or_404(chat_id)
    blocks = {
        name: read(chat) for name, (right, read) in BLOCKS.items() if request.user.has_perm(right)
    }
    if any(name in blocks for name in TEXTS):
        _record(request, chat)
    context = {
        **site,
        **blocks,
        **access_context(request, chat),
        **_links(request, chat),
        "title": contact_name(chat),
        "opts": Chat._meta,
        "chat": chat,
        "number": number_shown(chat.whatsapp_chat),
        "activity": ChatActivity.objects.filter(chat=chat).first(),
        **_joined(request, chat),
        "labels": labels_of(chat.pk),
        "longest_note": MAX_NOTE_LENGTH,
    }
    return TemplateResponse(request, TEMPLATE, context)


def contact_name(chat: Chat) -> str:
    return chat.staff_name or chat.client_name or number_shown(chat.whatsapp_chat)


def _links(request: HttpRequest, chat: Chat) -> dict[str, Any]:
    """Return the addresses of everything, and what the user may do."""
    key = chat.pk
    return {
        "all_sessions": list_address("sessions_app_chatsession", chat__id__exact=key, status="all"),
        "all_memories": list_address("memories_app_memory", chat_id__exact=key),
        "all_documents": list_address("memories_app_sourcedocument", q=key),
        "all_cards": list_address("cards_app_memorycard", q=key),
        "all_receipts": list_address("sessions_app_forgetreceipt", q=chat.whatsapp_chat),
        "all_events": list_address("audit_auditevent", q=key),
        "conversation": conversation_address(key) if request.user.has_perm(READ_MESSAGES) else "",
        "may_export": request.user.has_perms(EXPORT),
        "may_edit": request.user.has_perm(REVIEW),
        "may_forget": request.user.has_perm("sessions_app.forget"),
    }


def _joined(request: HttpRequest, chat: Chat) -> dict[str, Any]:
    """Return the addresses, and what a reader who merges contacts can split and undo."""
    addresses = addresses_of(chat)
    merges = not chat.is_group and request.user.has_perms(MERGE)
    return {
        "addresses": addresses,
        "may_merge": merges,
        "may_split": merges and len({line.row.address for line in addresses}) > 1,
        "merges": chat.merges.defer("rows") if merges else (),
    }


def _event_lines(chat_id: UUID) -> list[dict[str, Any]]:
    return [
        {
            "event": event,
            "action": action_shown(event.action),
            "fields": ", ".join(event.details.get("fields", [])),
        }
        for event in staff_events_of(chat_id=chat_id, most=EVENTS)
    ]


def _record(request: HttpRequest, chat: Chat) -> None:
    audit_record(
        action="conversation.read",
        actor=staff_actor(request),
        object_type="chat",
        object_id=chat.pk,
        details={"page": "contact"},
        chat_id=chat.pk,
    )


# Serve the readable export of a person: a page of its own, to print or to save as PDF.

TEMPLATES = "admin/contacts/export"


@require_GET
def export_page(request: HttpRequest, chat_id: UUID, site: dict[str, Any]) -> StreamingHttpResponse:
    """Return everything kept about the person as a page in their language."""
    if not request.user.has_perms((SEE, *EXPORT)):
        raise PermissionDenied
    chat = chat_or_404(chat_id)
    return StreamingHttpResponse(_pieces(request, chat), headers={"Cache-Control": "no-store"})


def _pieces(request: HttpRequest, chat: Chat) -> Iterator[str]:
    # Pages aren't in all the languages that people write in.
    is_known = chat.language in dict(settings.LANGUAGES)
    language = chat.language if is_known else translation.get_language()
    zone, made = timezone.get_current_timezone(), timezone.now()
    parts = readable_export(chat=chat, actor=staff_actor(request))

    def rendered() -> str | None:
        # The middleware that sets these has finished when this runs, and other pages are made
        # between two parts.
        with translation.override(language), timezone.override(zone):
            part = next(parts, None)
            if part is None:
                return None
            return render_to_string(f"{TEMPLATES}/{part.name}.html", {**part.values, "made": made})

    return iter(rendered, None)
