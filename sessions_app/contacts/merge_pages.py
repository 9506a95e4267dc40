"""Let staff merge two contacts, split addresses off one, or undo a merge: preview, then confirm."""

from collections.abc import Callable
from dataclasses import dataclass
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
from memoryproject.foundation.admin_kit.display import moment_shown
from memoryproject.foundation.admin_kit.staff_pages import rights_required, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor, staff_read_record
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.phone_numbers import number_shown, phone_forms
from sessions_app.contacts.contact_list import alike_contacts, contact_rows, contacts_found
from sessions_app.contacts.contact_pages import MERGE, contact_name
from sessions_app.contacts.readable_export import addresses_of
from sessions_app.history.dependencies import build_chat_memory
from sessions_app.inbox.filters_page import MAX_QUERY_LENGTH
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.merging import merge_chats, split_contact
from sessions_app.merging.portion import ContactSide
from sessions_app.models import Chat, ChatAccess, ContactMerge
from sessions_app.models.limits import Standing
from sessions_app.presentation.links import chat_or_404, contact_address
from sessions_app.turns.facade import answer_soon

FIND = "admin/contacts/merge_find.html"
PREVIEW = "admin/contacts/merge.html"
SHOWN = 20
WARNINGS = read_table(__file__, "words.yaml")["warnings"]


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
        except merge_chats.SeenChangedError as error:
            problem = str(error)
        except merge_chats.MergeError as error:
            messages.error(request, str(error))
            return redirect("admin:contact_merge_find", chat_id)
    try:
        preview = merge_chats.merge_preview(chat, other, chat_memory=build_chat_memory())
    except merge_chats.MergeError as error:
        messages.error(request, str(error))
        return redirect("admin:contact_merge_find", chat_id)
    context = {**_merge_shown(request, chat, preview), "problem": problem}
    return staff_page(request, PREVIEW, _("Merge two contacts"), context, of=Chat)


def _merge_shown(
    request: HttpRequest, chat: Chat, preview: merge_chats.MergePreview
) -> dict[str, Any]:
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
    merged = merge_chats.contacts_merge(
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
        return split_contact.contact_split(
            chat_id=chat.pk,
            keys=keys,
            name=request.POST.get("name", "").replace("\x00", "").strip()[:MAX_NAME],
            seen=request.POST.get("seen", ""),
            actor=staff_actor(request),
        )

    def preview() -> split_contact.SplitPreview:
        return split_contact.split_preview(chat_or_404(chat_id), keys)

    return _previewed(request, chat, preview, split)


def undo_page(request: HttpRequest, merge_id: UUID) -> HttpResponse:
    """Show what would go back to the contact that was merged into this one; a POST undoes it."""
    rights_required(request, *MERGE)
    record = get_object_or_404(ContactMerge.objects.select_related("chat"), pk=merge_id)

    def undo() -> Chat:
        seen = request.POST.get("seen", "")
        return split_contact.merge_undo(merge_id=merge_id, seen=seen, actor=staff_actor(request))

    return _previewed(request, record.chat, lambda: split_contact.undo_preview(record), undo)


def _previewed(
    request: HttpRequest,
    chat: Chat,
    read: Callable[[], split_contact.SplitPreview],
    split: Callable[[], Chat],
) -> HttpResponse:
    """Show the preview. A POST splits, unless the preview would be another one now."""
    problem = ""
    try:
        if request.method == "POST":
            try:
                return _done(request, chat, split())
            except merge_chats.SeenChangedError as error:
                problem = str(error)
        preview = read()
    except merge_chats.MergeError as error:
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


def _split_shown(preview: split_contact.SplitPreview) -> dict[str, Any]:
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


# Say in words what two contacts hold and what the merged one will look like.


@dataclass(frozen=True)
class Compared:
    """One line of the preview: what both have, and what the merged contact will have.

    ``is_addresses``: the values are lists of numbers.
    """

    label: str
    kept: Any
    gone: Any
    merged: Any
    is_addresses: bool = False


def compared(preview: merge_chats.MergePreview) -> list[Compared]:
    """Return the lines of the preview's table."""
    lines: list[tuple[str, Callable[[ContactSide], Any]]] = [
        (_("Name on WhatsApp"), lambda side: side.chat.client_name or "–"),
        (_("Reached at"), lambda side: number_shown(side.chat.whatsapp_chat)),
        (_("First seen"), lambda side: _moment(side.chat.created_at)),
        (_("Last message"), lambda side: _moment(side.last_at)),
        (_("Conversations"), lambda side: side.counts["sessions"]),
        (_("Messages"), lambda side: side.counts["messages"]),
        (_("Memories"), lambda side: side.counts["memories"]),
        (_("Documents"), lambda side: side.counts["documents"]),
        (_("Cards"), lambda side: side.counts["cards"]),
        (_("Notes"), lambda side: side.counts["notes"]),
        (_("Labels"), lambda side: ", ".join(label.name for label in side.labels) or "–"),
        (_("Assigned to"), _assignee),
        (_("Assistant"), _pause),
        (_("Access"), lambda side: access_words(side.access)),
        (_("Memory"), _memory),
    ]
    sides = (preview.kept, preview.gone, preview.merged)
    rows = [
        Compared(label, shown(sides[0]), shown(sides[1]), shown(sides[2])) for label, shown in lines
    ]
    kept, gone, merged = map(_numbers, sides)
    rows.insert(1, Compared(_("Addresses"), kept, gone, merged, is_addresses=True))
    return rows


def warnings_of(preview: merge_chats.MergePreview) -> list[str]:
    """Return what staff should look at twice before they confirm."""
    kept, gone = preview.kept, preview.gone
    found = []
    phones = [kept.chat.client_phone, gone.chat.client_phone]
    if all(phones) and phones[1] not in phone_forms(phones[0]):
        found.append("phones")
    if kept.talking and gone.talking:
        found.append("talking")
    accounts = {(side.chat.provider, side.chat.number_id) for side in (kept, gone)}
    if len(accounts) > 1:
        found.append("accounts")
    found = [str(WARNINGS[name]) for name in found]
    shared = {"shared_facts": preview.shared_facts, "shared_documents": preview.shared_documents}
    return found + [WARNINGS[name] % {"count": count} for name, count in shared.items() if count]


def access_words(access: ChatAccess | None) -> str:
    """Return whether the contact is blocked or allowed, and whether they opted out."""
    if access is None:
        return "–"
    words = []
    if access.standing:
        words.append(str(Standing(access.standing).label))
    if access.opted_out_at is not None:
        words.append(_("opted out"))
    if access.marketing_stopped:
        words.append(_("no marketing messages"))
    return ", ".join(words) or "–"


def _numbers(side: ContactSide) -> list[str]:
    shown = [number_shown(link.address) for link in side.addresses if link.left_at is None]
    return list(dict.fromkeys(shown or [number_shown(side.chat.whatsapp_chat)]))


def _assignee(side: ContactSide) -> str:
    return side.assignment.assignee.get_username() if side.assignment else "–"


def _pause(side: ContactSide) -> str:
    pause = side.pause
    if pause is None or not pause.holds(timezone.now()):
        return _("on")
    if pause.until is None:
        return _("paused")
    return _("paused until %(time)s") % {"time": _moment(pause.until)}


def _memory(side: ContactSide) -> str:
    states = {None: _("as set for all"), True: _("on"), False: _("off")}
    return states[side.chat.memory_enabled]


def _moment(at: Any) -> str:
    return moment_shown(at) if at else "–"
