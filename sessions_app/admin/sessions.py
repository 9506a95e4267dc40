"""Sessions, with the way to their messages."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app.models import ChatSession


@admin.register(ChatSession)
class ChatSessionAdmin(ReadOnlyAdmin):
    list_display = (
        "session_id",
        "chat",
        "status",
        "message_counter",
        "total_tokens",
        "last_active",
        "messages_link",
    )
    list_filter = ("status", "last_active")
    search_fields = ("session_id", "chat__whatsapp_chat", "chat__client_name")
    list_select_related = ("chat",)
    date_hierarchy = "last_active"

    @admin.display(description="messages")
    def messages_link(self, session: ChatSession) -> str:
        address = reverse("admin:sessions_app_message_changelist")
        return format_html(
            '<a href="{}?session__session_id__exact={}&o=2">read</a>', address, session.pk
        )
