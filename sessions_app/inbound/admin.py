"""Admin pages of the deliveries from the providers."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.display import shown_json
from sessions_app.models import InboundDelivery
from sessions_app.presentation.audited_view import ConversationAdmin
from sessions_app.presentation.row_search import deliveries_found

# The kinds of Event, by the name that a delivery stores.
EVENTS = {
    "InboundMessage": gettext_lazy("Message"),
    "MessageEdited": gettext_lazy("Edited message"),
    "MessageRevoked": gettext_lazy("Deleted message"),
    "Reaction": gettext_lazy("Reaction"),
    "StatusUpdate": gettext_lazy("Delivery status"),
    "OwnSend": gettext_lazy("Copy of our own message"),
    "AddressChanged": gettext_lazy("Changed address"),
    "Notice": gettext_lazy("Notice of the provider"),
    "Ignored": gettext_lazy("Nothing to store"),
}


class EventFilter(admin.SimpleListFilter):
    """Filter by the known kinds of events; a query for them would read the whole table."""

    title = gettext_lazy("event")
    parameter_name = "event"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return list(EVENTS.items())

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[InboundDelivery]
    ) -> QuerySet[InboundDelivery]:
        return queryset.filter(event=self.value()) if self.value() else queryset


@admin.register(InboundDelivery)
class InboundDeliveryAdmin(ConversationAdmin):
    read_as = "delivery"
    list_display = ("received_at", "provider", "shown_event", "outcome", "chat")
    list_filter = ("provider", EventFilter, "received_at")
    search_fields = ("delivery_key",)
    # The newest first; any other order would sort a million rows.
    sortable_by = ()
    list_select_related = ("chat",)
    exclude = ("event", "raw", "change")
    readonly_fields = ("shown_event", "shown_change", "shown_raw")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[InboundDelivery], search_term: str
    ) -> tuple[QuerySet[InboundDelivery], bool]:
        return deliveries_found(queryset, search_term), False

    @admin.display(description=gettext_lazy("event"))
    def shown_event(self, delivery: InboundDelivery) -> str:
        return str(EVENTS.get(delivery.event, delivery.event))

    @admin.display(description=gettext_lazy("change that waits for its message"))
    def shown_change(self, delivery: InboundDelivery) -> str:
        return shown_json(delivery.change)

    @admin.display(description=gettext_lazy("as it came"))
    def shown_raw(self, delivery: InboundDelivery) -> str:
        return shown_json(delivery.raw)
