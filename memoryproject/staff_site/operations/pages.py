"""What the pages of operations share: who may see them, and their frame."""

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
    """403 for staff who may not look after the server."""

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
    """The page of a tab, by its template in templates/admin/operations/."""
    shown = {
        **admin.site.each_context(request),
        "title": title,
        "tab": name,
        **context,
    }
    page = TemplateResponse(request, f"admin/operations/{name}.html", shown, status=status)
    page["Cache-Control"] = "no-store"
    return page
