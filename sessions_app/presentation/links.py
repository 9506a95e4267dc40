"""Addresses and links of the pages of one conversation, and the chat that an address names."""

from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.core import signing
from django.core.exceptions import ValidationError
from django.db.models import CharField, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce, NullIf
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.display import shown_link
from memoryproject.foundation.audit.audit_events import Person
from sessions_app.conversations.chat_queries import contacts_named
from sessions_app.models import Chat, ChatSession, Message

Reader: TypeAlias = User | AnonymousUser


def list_address(model: str, **filters: object) -> str:
    """Return the address of a list, such as ``sessions_app_message``, filtered by lookups."""
    return f"{reverse(f'admin:{model}_changelist')}?{urlencode(filters)}"


def conversation_address(chat_id: UUID, message_id: UUID | None = None, *, query: str = "") -> str:
    """Return the address of a chat's conversation, optionally at a message found by ``query``."""
    address = reverse("admin:sessions_app_chat_conversation", args=[chat_id])
    if message_id is None:
        return address
    parameters = {"q": query, "at": message_id} if query else {"at": message_id}
    return f"{address}?{urlencode(parameters)}#m-{message_id}"


def message_address(message: Message | None) -> str:
    """Return the address of a message in its conversation; "" without a message."""
    return "" if message is None else conversation_address(message.chat_id, message.pk)


def contact_address(chat_id: UUID) -> str:
    """Return the address of the page of a person or a group."""
    return reverse("admin:contact", args=[chat_id])


def people_of(chat_ids: Iterable[UUID]) -> dict[UUID, Person]:
    """Return the name and the page of each chat that is stored."""
    chats = Chat.objects.filter(pk__in=chat_ids)
    return {chat.pk: Person(chat.shown_name, contact_address(chat.pk)) for chat in chats}


def messages_address(session: ChatSession) -> str:
    """Return the address of a session's messages in reading order.

    See MessageAdmin.get_ordering.
    """
    return list_address("sessions_app_message", session__session_id__exact=session.pk)


def message_link(message: Message | None) -> str:
    if message is None:
        return "–"
    address = reverse("admin:sessions_app_message_change", args=[message.pk])
    label = _("%(role)s, no. %(number)s")
    values = {"role": message.get_role_display(), "number": message.order_num}
    return shown_link(address, label % values)


def chat_links(chat: Chat, user: Reader) -> SafeString:
    """Return links to the chat's related pages that the user may see."""
    conversation = (conversation_address(chat.pk), _("conversation"))
    return format_html_join(" · ", '<a href="{}">{}</a>', [conversation, *_lists(chat, user)])


def chat_lists(chat: Chat, user: Reader) -> SafeString:
    """Return the links for the conversation's own page."""
    settings = reverse("admin:sessions_app_chat_change", args=[chat.pk])
    links = [*_lists(chat, user), (settings, _("chat settings"))]
    return format_html_join(" · ", '<a href="{}">{}</a>', links)


def _lists(chat: Chat, user: Reader) -> list[tuple[str, str]]:
    """Return the lists that the user may see."""
    key = chat.pk
    lists = (
        ("sessions_app", "chatsession", {"chat__id__exact": key, "status": "all"}, _("sessions")),
        ("sessions_app", "message", {"chat__id__exact": key}, _("messages")),
        ("sessions_app", "turn", {"chat__id__exact": key}, _("answers")),
        ("cards_app", "memorycard", {"q": key}, _("cards")),
        ("memories_app", "memory", {"chat_id__exact": key}, _("memories")),
        ("audit", "auditevent", {"q": key}, _("audit log")),
    )
    return [
        (list_address(f"{app}_{model}", **query), title)
        for app, model, query, title in lists
        if user.has_perm(f"{app}.view_{model}")
    ]


# Find the chat that an address of the admin names, name chats in lists, date the admin's forms.


# Copying a number can copy marks of direction with it.
DIRECTION_MARKS = dict.fromkeys(
    map(ord, "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
)


def chat_name_query(column: str) -> Subquery:
    """Return the query for ``Chat.shown_name`` of the chat whose id a row has in this column."""
    name = Coalesce(
        NullIf("staff_name", Value("")), NullIf("client_name", Value("")), "whatsapp_chat"
    )
    of_it = Chat.objects.filter(pk=OuterRef(column)).annotate(name=name).values("name")
    return Subquery(of_it, output_field=CharField())


def chat_gone_text() -> str:
    """Return what staff are told whose text could not be stored for a client."""
    return _("The client was erased meanwhile, or merged with another contact. Nothing was stored.")


def contact_typed(text: str) -> Chat | None:
    """Return the contact that somebody typed in a form, None for an empty field.

    It may be the whole name, number or id, also copied from a page. Raises ValidationError.
    """
    typed = text.translate(DIRECTION_MARKS).strip()
    if not typed:
        return None
    found = contacts_named(typed)
    if len(found) > 1:
        raise ValidationError(_("Several contacts have this name or number: write it in full."))
    if not found:
        raise ValidationError(_("No contact has this name or number."))
    return found[0]


def chat_or_404(chat_id: UUID) -> Chat:
    """Return the chat. Raises Http404."""
    return get_object_or_404(Chat, pk=chat_id)


# Forms post the time when their page was made: later changes weren't visible on it.
SALT = "page made"


def made_stamp(when: datetime) -> str:
    """Return the value of a hidden input. Take the time before the page reads anything."""
    return signing.dumps(when.isoformat(), salt=SALT)


def made_at(posted: str) -> datetime | None:
    """Return the posted time; None if it is missing or invalid."""
    try:
        return datetime.fromisoformat(signing.loads(posted, salt=SALT))
    except signing.BadSignature:
        return None
