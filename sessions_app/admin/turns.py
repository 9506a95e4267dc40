"""Turns: how each answer came about; staff send again what failed."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app import wiring
from sessions_app.models import OutboundPart, Turn
from sessions_app.services.resend import turn_resend


class PartInline(admin.TabularInline):  # type: ignore[type-arg]
    model = OutboundPart
    extra = 0
    can_delete = False
    fields = ("number", "state", "delivery_status", "provider_message_id", "started_at", "error")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "chat", "state", "model", "attempts", "finished_at", "error")
    list_filter = ("state", "provider", "user_role", "model", "created_at")
    search_fields = ("turn_id", "chat__whatsapp_chat", "chat__client_name", "message__content")
    list_select_related = ("chat",)
    date_hierarchy = "created_at"
    inlines = (PartInline,)
    actions = ("send_again",)
    exclude = ("prompt", "recalled", "left_out", "timings", "lease_token")
    readonly_fields = ("shown_prompt", "shown_recalled", "shown_left_out", "shown_timings")

    @admin.display(description="prompt")
    def shown_prompt(self, turn: Turn) -> str:
        return _pretty(turn.prompt)

    @admin.display(description="recalled")
    def shown_recalled(self, turn: Turn) -> str:
        return _pretty(turn.recalled)

    @admin.display(description="left out")
    def shown_left_out(self, turn: Turn) -> str:
        return _pretty(turn.left_out)

    @admin.display(description="timings (ms)")
    def shown_timings(self, turn: Turn) -> str:
        return _pretty(turn.timings)

    @admin.action(description="Send the answer again (failed and unconfirmed turns)")
    def send_again(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        again = sum(turn_resend(turn=turn, enqueue=wiring.enqueue_chat) for turn in queryset)
        left = queryset.count() - again
        self.message_user(request, f"{again} answers are being sent again.", messages.SUCCESS)
        if left:
            text = f"{left} turns were left alone: they are neither failed nor unconfirmed."
            self.message_user(request, text, messages.WARNING)


def _pretty(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return format_html('<pre dir="auto" style="white-space:pre-wrap">{}</pre>', text)


@admin.register(OutboundPart)
class OutboundPartAdmin(ReadOnlyAdmin):
    list_display = ("turn", "number", "state", "delivery_status", "provider", "error")
    list_filter = ("state", "delivery_status", "provider")
    search_fields = ("provider_message_id", "turn__turn_id", "turn__chat__whatsapp_chat")
