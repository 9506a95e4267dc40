"""The list of the parts in which answers are sent."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy

from memoryproject.foundation.errors.translate_error import translate_error
from sessions_app.models import OutboundPart
from sessions_app.presentation.audited_view import ConversationAdmin
from sessions_app.presentation.row_search import parts_found


@admin.register(OutboundPart)
class OutboundPartAdmin(ConversationAdmin):
    read_as = "part of an answer"
    list_display = ("turn", "number", "state", "delivery_status", "provider", "shown_error")
    list_filter = ("state", "delivery_status", "provider")
    find_rows = staticmethod(parts_found)
    search_fields = ("provider_message_id",)
    list_select_related = ("turn",)
    ordering = ("-turn_id", "number")
    sortable_by = ()

    @admin.display(description=gettext_lazy("error"))
    def shown_error(self, part: OutboundPart) -> str:
        return translate_error(part.error)
