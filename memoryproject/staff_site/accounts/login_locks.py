"""The list of failed logins that count for a lock, and the action that lifts a lock."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.views import ChangeList

from memoryproject.foundation.admin_kit.display import shown_state
from memoryproject.foundation.admin_kit.read_only_admin import ReadOnlyAdmin
from memoryproject.foundation.audit.staff import staff_actor
from memoryproject.staff_site.accounts.lockout import (
    attempts_that_count,
    login_unlock,
    names_by_mark,
    pairs_locked,
)
from memoryproject.staff_site.models import FailedLogin


class FailedLoginList(ChangeList):  # type: ignore[misc]
    """Adds the user's name to each row: one query for all rows, not one for each."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        names, locked = names_by_mark(), pairs_locked(timezone.now())
        for row in self.result_list:
            row.shown_name = names.get(row.username or "", "")
            row.is_locked = (row.username, row.ip_address) in locked


class FailedLoginAdmin(ReadOnlyAdmin):
    list_display = (
        "attempt_time",
        "shown_name",
        "ip_address",
        "failures_since_start",
        "shown_lock",
    )
    fields = ("attempt_time", "shown_name", "ip_address", "user_agent", "failures_since_start")
    actions = ("unlock",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[FailedLogin]:
        recent = attempts_that_count(timezone.now()).values("pk")
        return FailedLogin.objects.filter(pk__in=recent).order_by("-attempt_time")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[FailedLoginList]:
        return FailedLoginList

    def has_unlock_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("dashboard.delete_failedlogin")

    @admin.action(description=gettext_lazy("Lift the lock"), permissions=["unlock"])
    def unlock(self, request: HttpRequest, queryset: QuerySet[FailedLogin]) -> None:
        freed = login_unlock(attempts=queryset, actor=staff_actor(request))
        text = ngettext(
            "%(count)d name can be tried again.", "%(count)d names can be tried again.", freed
        )
        self.message_user(request, text % {"count": freed}, messages.SUCCESS)

    @admin.display(description=gettext_lazy("name"))
    def shown_name(self, row: Any) -> str:
        """Return the name if an account has it.

        Other texts are hidden: people type passwords there.
        """
        if not hasattr(row, "shown_name"):
            row.shown_name = names_by_mark().get(row.username or "", "")
        return row.shown_name or _("a name that nobody has")

    @admin.display(description=gettext_lazy("state"))
    def shown_lock(self, row: Any) -> str:
        locked = _("locked")
        return shown_state(locked if row.is_locked else _("not locked"), bad=[locked])
