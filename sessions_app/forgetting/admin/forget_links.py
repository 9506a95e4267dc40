"""Build the addresses of the pages of forgetting, and check who may open them."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse

FORGET = "sessions_app.forget"
READ = ("sessions_app.view_message", "memories_app.view_memory")


def run_address(run_id: UUID) -> str:
    """Return the address of the page with a run's preview, progress and outcome."""
    return reverse("admin:sessions_app_forgetrun_change", args=[run_id])


def forget_required(request: HttpRequest) -> None:
    """Raise PermissionDenied unless the user may forget."""
    if not request.user.has_perm(FORGET):
        raise PermissionDenied


def may_read(request: HttpRequest) -> bool:
    """Return whether the user may read texts; otherwise only their number is shown."""
    return bool(request.user.has_perms(READ))
