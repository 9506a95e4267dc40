"""The URLs below /admin/operations/, for the admin site."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.admin import AdminSite
from django.urls import URLPattern, path

from memoryproject.staff_site.operations import views
from memoryproject.staff_site.operations.provider_page import operators_only, provider_page

PAGES: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("", views.overview_page, "operations"),
    ("settings/", views.settings_page, "operations_settings"),
    ("queue/", views.queue_page, "operations_queue"),
    ("queue/<str:key>/<str:verb>/", views.job_action, "operations_job"),
    ("schedules/", views.schedules_page, "operations_schedules"),
    ("schedules/<int:schedule_id>/run/", views.schedule_action, "operations_schedule_run"),
    ("turns/", views.turns_page, "operations_turns"),
    ("turns/<int:turn_id>/take-up/", views.turn_action, "operations_turn_take_up"),
    ("provider/", provider_page, "operations_provider"),
)


def operations_urls(site: AdminSite) -> list[URLPattern]:
    """Return the URLs, for logged-in staff with the operations permission."""
    return [
        path(f"operations/{address}", site.admin_view(operators_only(view)), name=name)
        for address, view, name in PAGES
    ]
