"""The staff site as an app, and Django's admin with our site instead of the stock one."""

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class DashboardConfig(AppConfig):
    name = "memoryproject.staff_site"
    label = "dashboard"
    verbose_name = _("Operations")

    def ready(self) -> None:
        # They connect the signals of logins.
        from memoryproject.staff_site.accounts import lockout, second_factor  # noqa: F401, PLC0415
        from memoryproject.staff_site.accounts.groups import after_migrate  # noqa: PLC0415 models

        post_migrate.connect(after_migrate, dispatch_uid="staff_groups")


class StaffAdminConfig(SimpleAdminConfig):
    """The admin's pages are imported with the addresses that lead to them (urls.py): few commands
    need them."""

    default_site = "memoryproject.staff_site.site.StaffSite"
