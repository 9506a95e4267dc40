"""The staff site as an app, and Django's admin with our site instead of the stock one."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class DashboardConfig(AppConfig):
    name = "memoryproject.staff_site"
    label = "dashboard"
    verbose_name = _("Operations")

    def ready(self) -> None:
        from memoryproject.staff_site.accounts import groups, lockout, second_factor  # noqa: PLC0415 models

        post_migrate.connect(groups.after_migrate, dispatch_uid="staff_groups")
        lockout.record_locks()
        lockout.keep_nothing_typed()
        second_factor.connect()


class StaffAdminConfig(SimpleAdminConfig):
    """The admin's pages are imported with the addresses that lead to them (urls.py): few commands
    need them."""

    default_site = "memoryproject.staff_site.site.StaffSite"
