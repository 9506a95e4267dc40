"""Link the admin's pages of one conversation."""

from __future__ import annotations

from typing import TypeAlias
from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.models import AnonymousUser, User
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from memoryproject.foundation.admin_kit.display import shown_link
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
