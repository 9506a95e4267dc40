"""Registers our admin pages in place of those of the packages."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django_otp.plugins.otp_static import admin as static_admin
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp import admin as totp_admin
from django_otp.plugins.otp_totp.models import TOTPDevice
from django_q.models import Failure, OrmQ, Schedule, Success

from memoryproject.foundation.admin_kit.display import column, moment_shown
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.staff_site.accounts import lockout, users
from memoryproject.staff_site.models import FailedLogin
from memoryproject.staff_site.operations.provider_test import RIGHT
from memoryproject.staff_site.operations.queue import fault_of, kind_of

# The imports above have registered the packages' pages by now: these pages show secrets.
PACKAGES = (static_admin, totp_admin)


class JobAdmin(ReadOnlyAdmin):
    """A list of django-q2's, read-only and for operators, outside the menu: our pages replace it.

    It doesn't show a job's arguments, its results or the texts of its errors.
    """

    actions = None
    search_fields: ClassVar[tuple[str, ...]] = ()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(RIGHT)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    def row_name(self, request: HttpRequest, row: Any) -> str:
        return str(self.kind(row))

    kind = column(_("job"), lambda job: kind_of(job.func))


class TaskAdmin(JobAdmin):
    list_display = ("kind", "started", "stopped", "error")
    fields = ("kind", "func", "started", "stopped", "attempt_count", "error")
    readonly_fields = ("kind", "error")

    error = column(_("error"), lambda task: "–" if task.success else fault_of(task.result).text)


class QueuedAdmin(JobAdmin):
    list_display = ("number", "kind", "lock")
    fields = ("number", "kind", "lock")
    readonly_fields = ("number", "kind")

    number = column(_("ID"), lambda job: job.pk, ordering="id")
    kind = column(_("job"), lambda job: kind_of(str(job.task.get("func") or "–")))


class ScheduleAdmin(JobAdmin):
    list_display = ("kind", "minutes", "next_run")
    fields = ("kind", "every", "next")
    readonly_fields = fields

    # Without the package's help, which is in English.
    every = column(_("Minutes"), lambda job: job.minutes)
    next = column(_("Next Run"), lambda job: moment_shown(job.next_run))


PAGES = {
    User: users.StaffUserAdmin,
    Group: users.StaffGroupAdmin,
    FailedLogin: lockout.FailedLoginAdmin,
    Schedule: ScheduleAdmin,
    Success: TaskAdmin,
    Failure: TaskAdmin,
    OrmQ: QueuedAdmin,
}

for model in (*PAGES, StaticDevice, TOTPDevice):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
for model, page in PAGES.items():
    admin.site.register(model, page)
