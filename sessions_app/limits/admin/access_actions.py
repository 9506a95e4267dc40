"""Block and allow the chosen chats of the inbox."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy, ngettext

from memoryproject.foundation.admin_kit.read_only_admin import ReadOnlyAdmin
from sessions_app.limits.admin.access_panel import RIGHTS, decided
from sessions_app.limits.dependencies import is_owners
from sessions_app.models import Chat
from sessions_app.models.limits import Standing, StandingReason


class AccessActions(ReadOnlyAdmin):
    """Mixin for the list of chats. The reason of a single chat is chosen on its page."""

    def has_takeover_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perms(RIGHTS)

    @admin.action(description=gettext_lazy("Allow"), permissions=["takeover"])
    def allow_selected(self, request: HttpRequest, queryset: QuerySet[Chat]) -> None:
        self._decide(request, queryset, Standing.ALLOWED, StandingReason.CLIENT)

    @admin.action(description=gettext_lazy("Block as spam"), permissions=["takeover"])
    def block_selected(self, request: HttpRequest, queryset: QuerySet[Chat]) -> None:
        self._decide(request, queryset, Standing.BLOCKED, StandingReason.SPAM)

    @admin.action(description=gettext_lazy("Reset to not decided"), permissions=["takeover"])
    def undecide_selected(self, request: HttpRequest, queryset: QuerySet[Chat]) -> None:
        self._decide(request, queryset, Standing.NONE, StandingReason.NONE)

    def _decide(
        self, request: HttpRequest, queryset: QuerySet[Chat], standing: str, reason: str
    ) -> None:
        chats = list(queryset.order_by("pk"))
        changed = sum(self._decide_one(request, chat, str(standing), str(reason)) for chat in chats)
        if changed:
            text = ngettext("%(n)d chat was changed.", "%(n)d chats were changed.", changed)
            self.message_user(request, text % {"n": changed}, messages.SUCCESS)
        if left := len(chats) - changed:
            text = ngettext(
                "%(n)d chat was skipped: already decided so, or the owner's.",
                "%(n)d chats were skipped: already decided so, or the owner's.",
                left,
            )
            self.message_user(request, text % {"n": left}, messages.WARNING)

    def _decide_one(self, request: HttpRequest, chat: Chat, standing: str, reason: str) -> Any:
        if standing and is_owners(chat):
            return False
        try:
            return decided(request, chat.pk, standing, reason)
        except Chat.DoesNotExist:
            # Erased or merged meanwhile: the others are changed.
            return False
