"""What the providers delivered."""

from __future__ import annotations

from django.contrib import admin

from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app.models import InboundDelivery


@admin.register(InboundDelivery)
class InboundDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("received_at", "provider", "event", "outcome", "chat")
    list_filter = ("provider", "event", "received_at")
    search_fields = ("delivery_key", "subject_id", "outcome", "chat__whatsapp_chat")
    list_select_related = ("chat",)
    date_hierarchy = "received_at"
