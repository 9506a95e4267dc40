"""Sessions, with the way to their messages."""

from __future__ import annotations

from django.contrib import admin

from memoryproject.lib.admin_display import shown_link, shown_state
from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app.admin.links import list_address, messages_address
from sessions_app.models import ChatSession
from sessions_app.models.sessions import SessionStatus


@admin.register(ChatSession)
class ChatSessionAdmin(ReadOnlyAdmin):
    list_display = ("chat", "messages_link", "shown_status", "last_active", "created_at")
    list_filter = ("status", "last_active")
    search_fields = ("session_id", "chat__whatsapp_chat", "chat__client_name")
    list_select_related = ("chat",)
    date_hierarchy = "last_active"
    fields = (
        "session_id",
        "chat",
        "messages_link",
        "turns_link",
        "status",
        "created_at",
        "last_active",
        "expired_at",
        "message_counter",
        "total_tokens",
        "window_start",
    )
    readonly_fields = fields

    @admin.display(description="messages")
    def messages_link(self, session: ChatSession) -> str:
        return shown_link(messages_address(session), f"read {session.message_counter}")

    @admin.display(description="turns")
    def turns_link(self, session: ChatSession) -> str:
        address = list_address("sessions_app_turn", session__session_id__exact=session.pk)
        return shown_link(address, "how the answers came about")

    @admin.display(description="status", ordering="status")
    def shown_status(self, session: ChatSession) -> str:
        return shown_state(session.status, good=[SessionStatus.ACTIVE])
