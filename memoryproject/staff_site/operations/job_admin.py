"""django-q2's own lists, read-only and for operators only.

They don't show a job's arguments, its results or the texts of its errors. Our own pages replace
them in the menu.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django_q.models import Failure, OrmQ, Schedule, Success, Task

from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.staff_site.operations.job_words import fault_of, kind_of
from memoryproject.staff_site.operations.provider_page import RIGHT


class JobAdmin(ReadOnlyAdmin):
    """A list outside the menu: the queue and the schedules have pages of their own."""

    actions = None
    search_fields: ClassVar[tuple[str, ...]] = ()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(RIGHT)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False


class TaskAdmin(JobAdmin):
    list_display = ("kind", "started", "stopped", "error")
    fields = ("kind", "func", "started", "stopped", "attempt_count", "error")
    readonly_fields = ("kind", "error")

    @admin.display(description=_("job"))
    def kind(self, task: Task) -> str:
        return kind_of(task.func)

    @admin.display(description=_("error"))
    def error(self, task: Task) -> str:
        return "–" if task.success else fault_of(task.result).text


class QueuedAdmin(JobAdmin):
    list_display = ("number", "kind", "lock")
    fields = ("number", "kind", "lock")
    readonly_fields = ("number", "kind")

    @admin.display(description=_("ID"), ordering="id")
    def number(self, job: OrmQ) -> int:
        return job.pk

    @admin.display(description=_("job"))
    def kind(self, job: OrmQ) -> str:
        return kind_of(str(job.task.get("func") or "–"))


class ScheduleAdmin(JobAdmin):
    # The name is the program's, in English.
    list_display = ("kind", "name", "minutes", "next_run")
    fields = ("name", "kind", "minutes", "next_run")
    readonly_fields = ("kind",)

    @admin.display(description=_("job"))
    def kind(self, schedule: Schedule) -> str:
        return kind_of(schedule.func)


OURS: tuple[tuple[Any, type[JobAdmin]], ...] = (
    (Schedule, ScheduleAdmin),
    (Success, TaskAdmin),
    (Failure, TaskAdmin),
    (OrmQ, QueuedAdmin),
)


def replace_stock_lists() -> None:
    """Register these lists in place of those that django-q2 registered."""
    for model, ours in OURS:
        if admin.site.is_registered(model):
            admin.site.unregister(model)
        admin.site.register(model, ours)
