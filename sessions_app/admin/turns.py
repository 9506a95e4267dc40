"""Turns: how each answer came about; staff send again what failed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from memoryproject.lib.admin_display import shown_json, shown_state, shown_text
from sessions_app import wiring
from sessions_app.admin.learned import learned_table, learning_state
from sessions_app.admin.links import message_link
from sessions_app.admin.reading import ConversationAdmin
from sessions_app.admin.replay import prompt_table, question_of, recalled_table
from sessions_app.models import OutboundPart, Turn
from sessions_app.models.turns import TurnState
from sessions_app.services.resend import turn_resend

BAD = (TurnState.FAILED, TurnState.UNCONFIRMED)


class PartInline(admin.TabularInline):  # type: ignore[type-arg]
    model = OutboundPart
    verbose_name_plural = "parts in which the answer was sent"
    extra = 0
    can_delete = False
    fields = ("number", "state", "delivery_status", "provider_message_id", "started_at", "error")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Turn)
class TurnAdmin(ConversationAdmin):
    read_as = "turn"
    list_is_read = True
    list_display = ("created_at", "chat", "short_question", "shown_state", "error")
    list_filter = ("state", "provider", "created_at")
    search_fields = ("turn_id", "chat__whatsapp_chat", "chat__client_name", "message__content")
    list_select_related = ("chat", "message")
    date_hierarchy = "created_at"
    inlines = (PartInline,)
    actions = ("send_again",)
    fieldsets = (
        (None, {"fields": ("chat", "question", "answer", "shown_state", "error", "user_role")}),
        ("Recalled", {"fields": ("shown_recalled", "shown_left_out")}),
        ("Learned from it", {"fields": ("shown_learned", "shown_learning")}),
        ("What the chat model was sent", {"fields": ("shown_prompt", "summary_link")}),
        (
            "Numbers",
            {"fields": ("model", "prompt_tokens", "completion_tokens", "shown_timings")},
        ),
        ("Times", {"fields": ("asked_at", "created_at", "finished_at")}),
        (
            "Work",
            {
                "classes": ("collapse",),
                "fields": (
                    "turn_id",
                    "session",
                    "message_link",
                    "reply_link",
                    "provider",
                    "number_id",
                    "provider_message_id",
                    "context",
                    "attempts",
                    "lease_owner",
                    "lease_until",
                    "not_before",
                ),
            },
        ),
    )
    readonly_fields = (
        "turn_id",
        "question",
        "answer",
        "shown_state",
        "shown_prompt",
        "shown_recalled",
        "shown_left_out",
        "shown_learned",
        "shown_learning",
        "shown_timings",
        "created_at",
        "message_link",
        "reply_link",
        "summary_link",
    )

    @admin.display(description="message")
    def short_question(self, turn: Turn) -> str:
        return question_of(turn, longest=120)

    @admin.display(description="message")
    def question(self, turn: Turn) -> str:
        return question_of(turn, longest=100_000)

    @admin.display(description="answer")
    def answer(self, turn: Turn) -> str:
        return shown_text(turn.reply.content if turn.reply else turn.unstored_reply)

    @admin.display(description="state", ordering="state")
    def shown_state(self, turn: Turn) -> str:
        return shown_state(turn.state, good=[TurnState.SENT], bad=BAD)

    @admin.display(description="prompt")
    def shown_prompt(self, turn: Turn) -> str:
        return prompt_table(turn)

    @admin.display(description="memories and messages")
    def shown_recalled(self, turn: Turn) -> str:
        return recalled_table(turn)

    @admin.display(description="memories")
    def shown_learned(self, turn: Turn) -> str:
        return learned_table(turn)

    @admin.display(description="how it went")
    def shown_learning(self, turn: Turn) -> str:
        return learning_state(turn)

    @admin.display(description="left out")
    def shown_left_out(self, turn: Turn) -> str:
        return shown_json(turn.left_out)

    @admin.display(description="timings (ms)")
    def shown_timings(self, turn: Turn) -> str:
        return shown_json(turn.timings)

    @admin.display(description="stored message")
    def message_link(self, turn: Turn) -> str:
        return message_link(turn.message)

    @admin.display(description="summary in it")
    def summary_link(self, turn: Turn) -> str:
        return message_link(turn.summary)

    @admin.display(description="stored answer")
    def reply_link(self, turn: Turn) -> str:
        return message_link(turn.reply)

    @admin.action(description="Send the answer again (failed and unconfirmed turns)")
    def send_again(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        again = sum(turn_resend(turn=turn, enqueue=wiring.enqueue_chat) for turn in queryset)
        left = queryset.count() - again
        self.message_user(request, f"{again} answers are being sent again.", messages.SUCCESS)
        if left:
            text = f"{left} turns were left alone: they are neither failed nor unconfirmed."
            self.message_user(request, text, messages.WARNING)


@admin.register(OutboundPart)
class OutboundPartAdmin(ConversationAdmin):
    read_as = "part of an answer"
    list_display = ("turn", "number", "state", "delivery_status", "provider", "error")
    list_filter = ("state", "delivery_status", "provider")
    search_fields = ("provider_message_id", "turn__turn_id", "turn__chat__whatsapp_chat")
    list_select_related = ("turn",)
