"""Forgetting from the lists of the admin: asks first, then leaves a receipt for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from memoryproject.audit.events import Actor
from memoryproject.lib.admin_confirm import confirmation, is_confirmed
from memoryproject.lib.admin_display import shown_table
from memoryproject.lib.read_only_admin import ReadOnlyAdmin
from sessions_app import wiring
from sessions_app.models import ForgetReceipt
from sessions_app.services.forget.carry_out import ForgetTools
from sessions_app.services.forget.kinds import NothingToForgetError
from sessions_app.services.forget.probe import StillFoundError

Forget = Callable[[UUID, ForgetTools, Actor], ForgetReceipt]

FORGOTTEN = (
    "forgotten everywhere: texts, vectors, summaries, answers that told it, replays and raw "
    "deliveries."
)


class ForgetAction(ReadOnlyAdmin):
    """The part of a page that forgets what is chosen. ``forget`` does it; ``forget_note`` says
    what goes along."""

    forget_note = ""

    def forget(self, key: UUID, tools: ForgetTools, actor: Actor) -> ForgetReceipt:
        raise NotImplementedError

    def has_forget_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request)

    @admin.action(description="Forget, with proof", permissions=["forget"])
    def forget_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Asks first, then forgets."""
        if not is_confirmed(request):
            return confirmation(
                self,
                request,
                queryset,
                action="forget_selected",
                title="Forget with proof",
                button="Forget",
                consequence=FORGOTTEN,
                note=self.forget_note,
            )
        self._forget(request, queryset.values_list("pk", flat=True))
        return None

    def _forget(self, request: HttpRequest, keys: Iterable[UUID]) -> None:
        actor = Actor("staff", name=request.user.get_username())
        tools = wiring.forget_tools()
        done = 0
        for key in list(keys):
            try:
                receipt = self.forget(key, tools, actor)
            except NothingToForgetError:
                continue  # it went with another one
            except StillFoundError as error:
                self.message_user(request, f"Nothing was changed: {error}", messages.ERROR)
                continue
            done += 1
            address = reverse("admin:sessions_app_forgetreceipt_change", args=[receipt.pk])
            link = format_html('<a href="{}">receipt {}</a>', address, receipt.receipt_id)
            self.message_user(request, format_html("Forgotten, and not found any more: {}.", link))
        if not done:
            self.message_user(request, "There was nothing left to forget.", messages.WARNING)


@admin.register(ForgetReceipt)
class ForgetReceiptAdmin(ReadOnlyAdmin):
    list_display = ("forgotten_at", "kind", "object_id", "rows", "probe", "actor_kind", "actor")
    list_filter = ("kind", "forgotten_at")
    search_fields = ("receipt_id", "object_id")
    date_hierarchy = "forgotten_at"
    fieldsets = (
        (None, {"fields": ("receipt_id", "kind", "object_id", "forgotten_at", "probe")}),
        ("What was swept", {"fields": ("shown_swept",)}),
        ("By whom", {"fields": ("actor_kind", "actor", "content_hash")}),
    )

    @admin.display(description="rows")
    def rows(self, receipt: ForgetReceipt) -> int:
        return sum(receipt.swept.values())

    @admin.display(description="rows by table")
    def shown_swept(self, receipt: ForgetReceipt) -> str:
        return shown_table(("table", "rows"), sorted(receipt.swept.items()))
