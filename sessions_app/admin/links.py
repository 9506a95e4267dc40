"""Links between the admin's pages of one conversation."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from memoryproject.lib.admin_display import shown_link
from sessions_app.models import Chat, ChatSession, Message


def list_address(model: str, **filters: object) -> str:
    """The address of a list, such as ``sessions_app_message``, narrowed by lookups."""
    return f"{reverse(f'admin:{model}_changelist')}?{urlencode(filters)}"


def messages_address(session: ChatSession) -> str:
    """A session's messages in reading order: see MessageAdmin.get_ordering."""
    return list_address("sessions_app_message", session__session_id__exact=session.pk)


def message_link(message: Message | None) -> str:
    if message is None:
        return "–"
    address = reverse("admin:sessions_app_message_change", args=[message.pk])
    return shown_link(address, f"{message.get_role_display()}, no. {message.order_num}")


def chat_links(chat: Chat) -> SafeString:
    """What belongs to a chat."""
    conversation = reverse("admin:sessions_app_chat_conversation", args=[chat.pk])
    return format_html_join(
        " · ", '<a href="{}">{}</a>', [(conversation, "conversation"), *_lists(chat)]
    )


def chat_lists(chat: Chat) -> SafeString:
    """The same, beside the conversation."""
    return format_html_join(" · ", '<a href="{}">{}</a>', _lists(chat))


def _lists(chat: Chat) -> list[tuple[str, str]]:
    return [
        (
            list_address("sessions_app_chatsession", chat__id__exact=chat.pk, status="all"),
            "sessions",
        ),
        (list_address("sessions_app_message", chat__id__exact=chat.pk), "messages"),
        (list_address("sessions_app_turn", chat__id__exact=chat.pk), "turns"),
        (list_address("cards_app_memorycard", q=chat.pk), "cards"),
        (list_address("memories_app_memory", chat_id__exact=chat.pk), "memories"),
        (list_address("audit_auditevent", q=chat.pk), "audit log"),
    ]
