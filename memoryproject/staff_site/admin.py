"""Registers the staff site's models in the admin, and replaces the lists of other packages."""

from __future__ import annotations

from memoryproject.staff_site.accounts import admin as access_admin
from memoryproject.staff_site.operations.job_admin import replace_stock_lists

__all__ = ["access_admin"]

replace_stock_lists()
