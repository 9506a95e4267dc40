"""The list of contacts, the page of one with all that is kept of them, and the form of the name."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils import timezone, translation
from django.utils.translation import gettext as _, gettext_lazy

from cards_app.models import MemoryCard
from memories_app.models import MemoryStatus, SourceDocument
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.admin_kit.list_csv import (
    MAX_ROWS,
    PARAMETER as CSV,
    BoundedPaginator,
    csv_of,
)
from memoryproject.foundation.admin_kit.staff_pages import rights_required, staff_page
from memoryproject.foundation.admin_kit.stamped_form import ConflictCheckedForm
from memoryproject.foundation.audit import audit_events
from memoryproject.foundation.text.phone_numbers import number_shown
from sessions_app.contacts import contact_list
from sessions_app.contacts.readable_export import addresses_of, readable_export
from sessions_app.conversations.chat_addresses import chats_of_other_forms
from sessions_app.conversations.phrases import languages
from sessions_app.forgetting.facade import receipts_of
from sessions_app.inbox.filters_page import ACCESSES, MAX_QUERY_LENGTH
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.limits.presentation import access_context
from sessions_app.models import Chat, ChatActivity, ForgetReceipt, Label
from sessions_app.models.review import MAX_NOTE_LENGTH
from sessions_app.person.person_pages import language_shown, person_context
from sessions_app.presentation.links import (
    chat_or_404,
    contact_address,
    conversation_address,
    list_address,
)

LIST = "admin/contacts/list.html"
SEE = "sessions_app.view_chat"


def contacts_page(request: HttpRequest) -> HttpResponse:
    """Show the people; ``?q=`` takes a part of a name or a number, ``?access=`` a filter.

    With ``?_csv=`` it returns the list as a file.
    """
    rights_required(request, SEE)
    query = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUERY_LENGTH]
    access = request.GET.get("access", "")
    access = access if access in dict(ACCESSES) else ""
    today = build_usage_limits().day_of(timezone.now())
    people = contact_list.contacts_found(query, access=access, today=today)
    if CSV in request.GET:
        return _csv(request, list(people[:MAX_ROWS]))
    page = BoundedPaginator(people, contact_list.PEOPLE_A_PAGE).get_page(request.GET.get("p"))
    context = {
        "query": query,
        "access": access,
        "accesses": ACCESSES,
        "longest": MAX_QUERY_LENGTH,
        "page": page,
        "may_merge": request.user.has_perms(MERGE),
        "rows": contact_list.contact_rows(list(page.object_list), **_counted(request)),
    }
    return staff_page(request, LIST, _("Contacts"), context, of=Chat)


def _csv(request: HttpRequest, people: Sequence[Chat]) -> HttpResponse:
    """Return these people as a file. The audit log has that it was taken."""
    counted = _counted(request)
    audit_events.list_export_record(request, "contact", len(people))
    rows = contact_list.contact_rows(people, **counted)
    return csv_of("contacts", contact_list.contact_columns(**counted), rows)


def _counted(request: HttpRequest) -> dict[str, bool]:
    """Return which numbers the reader may see."""
    return {
        "with_sessions": request.user.has_perm("sessions_app.view_chatsession"),
        "with_memories": request.user.has_perm(SEE_MEMORIES),
    }


# One person or group.


CONTACT = "admin/contacts/contact.html"
EVENTS = 15
READ_MESSAGES = "sessions_app.view_message"
REVIEW = "sessions_app.review_chat"
SEE_MEMORIES = "memories_app.view_memory"
MERGE = (SEE, "sessions_app.merge_chat", READ_MESSAGES, SEE_MEMORIES)
EXPORT = (READ_MESSAGES, SEE_MEMORIES, "memories_app.export_memory")
SHOWN, SHOWN_MEMORIES = 10, 20
# These show what people said, or what was said of them: opening the page is a read.
TEXTS = ("memories", "documents", "cards", "notes")


def contact_page(request: HttpRequest, chat_id: UUID) -> TemplateResponse:
    """Show the person; each block only to those who may see its list."""
    rights_required(request, SEE)
    chat = chat_or_404(chat_id)
    blocks = {
        name: _some(rows, SHOWN_MEMORIES if name == "memories" else SHOWN)
        for name, (right, rows) in _blocks(chat).items()
        if request.user.has_perm(right)
    }
    sees_events = request.user.has_perm("audit.view_auditevent")
    if any(name in blocks for name in TEXTS):
        audit_events.staff_read_record(request, "chat", chat.pk, chat_id=chat.pk, page="contact")
    context = {
        **blocks,
        "language": language_shown(chat.language),
        **person_context(request, chat),
        **access_context(request, chat),
        **_links(request, chat),
        "chat": chat,
        "number": number_shown(chat.whatsapp_chat),
        "activity": ChatActivity.objects.filter(chat=chat).first(),
        **_joined(request, chat),
        "events": _event_lines(chat.pk) if sees_events else None,
        "labels": Label.objects.filter(chat_labels__chat=chat),
        "longest_note": MAX_NOTE_LENGTH,
    }
    return staff_page(request, CONTACT, contact_name(chat), context, of=Chat)


def _blocks(chat: Chat) -> dict[str, tuple[str, QuerySet[Any]]]:
    """Return the rows of each block, with the right that it needs; the rows aren't read yet."""
    own = {"chat_id": chat.pk}
    in_force = memories_for_staff().filter(**own).exclude(status=MemoryStatus.SUPERSEDED)
    memories = in_force.defer("terms", "likeness")
    documents = SourceDocument.objects.filter(**own).order_by("-created_at")
    receipts = receipts_of(ForgetReceipt.objects.all(), chat.whatsapp_chat)
    cards = MemoryCard.objects.filter(**own).order_by("-session_started_at")
    return {
        "sessions": ("sessions_app.view_chatsession", chat.sessions.order_by("-created_at")),
        "memories": (SEE_MEMORIES, memories.order_by("-pinned", "-created_at", "memory_id")),
        "documents": ("memories_app.view_sourcedocument", documents),
        "cards": ("cards_app.view_memorycard", cards),
        "notes": (READ_MESSAGES, chat.notes.order_by("-created_at", "note_id")),
        "receipts": ("sessions_app.view_forgetreceipt", receipts.order_by("-id")),
    }


def _some(rows: QuerySet[Any], most: int) -> dict[str, Any]:
    """Return the first rows of a block; ``more``: there are others, behind its link."""
    found = list(rows[: most + 1])
    return {"rows": found[:most], "more": len(found) > most}


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
    """Return the addresses, and what a reader who merges contacts can merge, split and undo."""
    addresses = addresses_of(chat)
    merges = not chat.is_group and request.user.has_perms(MERGE)
    return {
        "addresses": addresses,
        "may_merge": merges,
        "may_split": merges and len({row.address for row, _number in addresses}) > 1,
        "merges": chat.merges.defer("rows") if merges else (),
        "same": chats_of_other_forms([chat]).get(chat.pk, []) if merges else (),
    }


def _event_lines(chat_id: UUID) -> list[dict[str, Any]]:
    return [
        {
            "event": event,
            "action": audit_events.action_shown(event.action),
            "fields": ", ".join(event.details.get("fields", [])),
        }
        for event in audit_events.staff_events_of(chat_id=chat_id, most=EVENTS)
    ]


# Serve the readable export of a person: a page of its own, to print or to save as PDF.

TEMPLATES = "admin/contacts/export"


def export_page(request: HttpRequest, chat_id: UUID) -> StreamingHttpResponse:
    """Return everything kept about the person as a page in their language.

    ``?redact=true`` leaves personal data out.
    """
    rights_required(request, SEE, *EXPORT)
    chat = chat_or_404(chat_id)
    return StreamingHttpResponse(_pieces(request, chat), headers={"Cache-Control": "no-store"})


def _pieces(request: HttpRequest, chat: Chat) -> Iterator[str]:
    # Pages aren't in all the languages that people write in.
    is_known = chat.language in dict(settings.LANGUAGES)
    language = chat.language if is_known else translation.get_language()
    zone, made = timezone.get_current_timezone(), timezone.now()
    redacted = request.GET.get("redact") in ("true", "1", "on")
    parts = readable_export(chat=chat, actor=audit_events.staff_actor(request), redacted=redacted)

    def rendered() -> str | None:
        # The middleware that sets these has finished when this runs, and other pages are made
        # between two parts.
        with translation.override(language), timezone.override(zone):
            part = next(parts, None)
            if part is None:
                return None
            name, values = part
            return render_to_string(f"{TEMPLATES}/{name}.html", {**values, "made": made})

    return iter(rendered, None)


# The name that staff give a person; WhatsApp's name stays beside it.


EDIT = "admin/contacts/edit.html"


def _languages() -> list[tuple[str, str]]:
    names = [(code, translation.get_language_info(code)["name_translated"]) for code in languages()]
    return [("", _("As the person writes")), *sorted(names, key=lambda each: each[1])]


class ContactForm(ConflictCheckedForm):
    fixed_language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        choices=_languages,
        required=False,
        help_text=gettext_lazy("The assistant answers in it, and all texts to them are in it."),
    )

    class Meta:
        model = Chat
        fields = ("staff_name", "fixed_language")
        labels: ClassVar = {"staff_name": gettext_lazy("Name")}
        help_texts: ClassVar = {
            "staff_name": gettext_lazy(
                "Shown to staff instead of the name on WhatsApp. Leave empty to show that one."
            )
        }
        widgets: ClassVar = {"staff_name": forms.TextInput(attrs={"dir": "auto", "size": 40})}


def edit_page(request: HttpRequest, chat_id: UUID) -> HttpResponse:
    """Show the form, and save it unless somebody else changed the same meanwhile."""
    rights_required(request, SEE, REVIEW)
    chat = chat_or_404(chat_id)
    form = ContactForm(request.POST if request.method == "POST" else None, instance=chat)
    if request.method == "POST" and _saved(request, form):
        messages.success(request, _("The contact was saved."))
        return redirect(contact_address(chat.pk))
    stored = chat_or_404(chat_id)
    context = {"chat": stored, "name": contact_name(stored), "form": form}
    return staff_page(request, EDIT, _("Edit a contact"), context, of=Chat)


def _saved(request: HttpRequest, form: ContactForm) -> bool:
    """Save under the lock that the form takes to look for changes by others."""
    with transaction.atomic():
        if not form.is_valid():
            return False
        chat = form.save(commit=False)
        chat.language = chat.fixed_language or chat.language
        chat.save(update_fields=["staff_name", "fixed_language", "language", "updated_at"])
        audit_events.staff_edit_record(
            request, "chat.update", "chat", chat.pk, form.changed_data, chat_id=chat.pk
        )
    return True
