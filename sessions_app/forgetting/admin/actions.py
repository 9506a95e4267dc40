"""Forget objects from the lists of the admin.

The selection is shown with everything that would go with it, and is forgotten after a confirmation.
See run_pages.py.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.admin_kit.read_only_admin import ReadOnlyAdmin
from sessions_app.forgetting.admin.forget_links import FORGET, run_address
from sessions_app.forgetting.runs import MAX_ITEMS, TooManyError, run_draft
from sessions_app.models import Chat, ChatSession, ForgottenKind, Message

KINDS: dict[type[Any], str] = {
    Memory: str(ForgottenKind.MEMORY),
    Message: str(ForgottenKind.MESSAGE),
    ChatSession: str(ForgottenKind.SESSION),
    Chat: str(ForgottenKind.CHAT),
    SourceDocument: str(ForgottenKind.DOCUMENT),
}


class ForgetAction(ReadOnlyAdmin):
    """Mixin for a list in which staff select objects to forget.

    They can select one, several, or all that the list's search and filters found.
    """

    unbounded_actions: Collection[str] = ("forget_selected",)

    def has_forget_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(FORGET))

    @admin.action(description=gettext_lazy("Erase…"), permissions=["forget"])
    def forget_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Store the selection as a draft and show what would go."""
        kind = KINDS[self.model]
        keys = list(queryset.order_by().values_list("pk", flat=True)[: MAX_ITEMS + 1])
        if not keys:
            # Another person forgot it while the list was open, or it no longer matches the filter.
            text = _("What was chosen isn't in the list any more.")
            self.message_user(request, text, messages.WARNING)
            return None
        try:
            run = run_draft(
                chosen=[(kind, key) for key in keys], asked_by=request.user.get_username()
            )
        except TooManyError:
            text = _("At most {most} are erased at once. Narrow the list by a filter first.")
            self.message_user(request, text.format(most=MAX_ITEMS), messages.ERROR)
            return None
        return redirect(run_address(run.pk))
