"""What the providers delivered."""

from __future__ import annotations

from django.contrib import admin

from memoryproject.lib.admin_display import shown_json
from sessions_app.admin.reading import ConversationAdmin
from sessions_app.models import InboundDelivery


@admin.register(InboundDelivery)
class InboundDeliveryAdmin(ConversationAdmin):
    read_as = "delivery"
    list_display = ("received_at", "provider", "event", "outcome", "chat")
    list_filter = ("provider", "event", "received_at")
    search_fields = ("delivery_key", "subject_id", "outcome", "chat__whatsapp_chat")
    list_select_related = ("chat",)
    date_hierarchy = "received_at"
    exclude = ("raw", "change")
    readonly_fields = ("shown_change", "shown_raw")

    @admin.display(description="change that waits for its message")
    def shown_change(self, delivery: InboundDelivery) -> str:
        return shown_json(delivery.change)

    @admin.display(description="as it came")
    def shown_raw(self, delivery: InboundDelivery) -> str:
        return shown_json(delivery.raw)
