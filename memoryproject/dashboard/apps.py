"""Django's admin, with our site in place of the stock one."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class StaffAdminConfig(AdminConfig):
    default_site = "memoryproject.dashboard.staff_site.StaffSite"
