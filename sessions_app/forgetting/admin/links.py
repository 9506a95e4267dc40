"""Addresses of the pages of forgetting, and who may open them."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse

FORGET = "sessions_app.forget"
READ = ("sessions_app.view_message", "memories_app.view_memory")


def run_address(run_id: UUID) -> str:
    """What would go; how far it is; what came of it."""
    return reverse("admin:sessions_app_forgetrun_change", args=[run_id])


def person_address(chat_id: UUID) -> str:
    """The page from which a whole person is forgotten."""
    return reverse("admin:sessions_app_forgetrun_person", args=[chat_id])


def forget_required(request: HttpRequest) -> None:
    """Raises PermissionDenied."""
    if not request.user.has_perm(FORGET):
        raise PermissionDenied


def may_read(request: HttpRequest) -> bool:
    """Whether texts are shown; else their number alone."""
    return bool(request.user.has_perms(READ))
