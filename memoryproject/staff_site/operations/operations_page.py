"""Shared by the operations pages: the permission check and the page frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse

RIGHT = "dashboard.operate_server"

View = Callable[..., HttpResponseBase]


def operators_only(view: View) -> View:
    """Return the view with a 403 for staff without the operations permission."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.has_perm(RIGHT):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded


def operations_page(
    request: HttpRequest,
    name: str,
    *,
    title: str,
    context: Mapping[str, Any],
    status: int = 200,
) -> TemplateResponse:
    """Return the page of a tab, from its template in templates/admin/operations/."""
    shown = {
        **admin.site.each_context(request),
        "title": title,
        "tab": name,
        **context,
    }
    page = TemplateResponse(request, f"admin/operations/{name}.html", shown, status=status)
    page["Cache-Control"] = "no-store"
    return page
