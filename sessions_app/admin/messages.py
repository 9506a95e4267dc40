"""Messages and their vectors."""

from __future__ import annotations

from django.contrib import admin
from django.utils.html import format_html

from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app.models import Message, MessageEmbedding


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ("said_at", "order_num", "role", "kind", "text", "chat", "delivery_status")
    list_filter = ("role", "kind", "delivery_status", "provider", "received_at")
    search_fields = (
        "content",
        "message_id",
        "session__session_id",
        "chat__whatsapp_chat",
        "provider_message_id",
    )
    list_select_related = ("chat", "session")
    date_hierarchy = "received_at"
    ordering = ("-received_at", "-order_num")
    exclude = ("terms", "term_count")
    raw_id_fields = ("session", "chat", "answers")

    @admin.display(description="received", ordering="received_at")
    def said_at(self, message: Message) -> object:
        return message.received_at

    @admin.display(description="content")
    def text(self, message: Message) -> str:
        """The browser finds each text's own direction: Hebrew runs from the right."""
        if message.revoked_at:
            return format_html("<em>{}</em>", "deleted by the sender")
        shown = message.content if len(message.content) <= 200 else message.content[:199] + "…"
        return format_html('<span dir="auto" style="white-space:pre-wrap">{}</span>', shown)


@admin.register(MessageEmbedding)
class MessageEmbeddingAdmin(ReadOnlyAdmin):
    list_display = ("message", "model")
    list_filter = ("model",)
    search_fields = ("message__content", "model")
    list_select_related = ("message",)
    exclude = ("vector",)
