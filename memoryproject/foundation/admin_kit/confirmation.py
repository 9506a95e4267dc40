"""The page that asks staff to confirm an irreversible action on the chosen rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse

SHOWN = 100


def is_confirmed(request: HttpRequest) -> bool:
    return "confirmed" in request.POST


def confirmation(
    page: ModelAdmin[Any],
    request: HttpRequest,
    queryset: QuerySet[Any],
    *,
    chosen: Sequence[Any],
    action: str,
    title: str,
    button: str,
    consequence: str,
) -> TemplateResponse:
    """Return the page. It names the first SHOWN of the chosen rows.

    ``consequence`` is a sentence; the button posts ``action`` again, confirmed.
    """
    context = {
        **page.admin_site.each_context(request),
        "title": title,
        "opts": page.opts,
        "action": action,
        "button": button,
        "consequence": consequence,
        "count": len(chosen),
        "objects": queryset[:SHOWN],
        "chosen": chosen,
        "selected": ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/confirm_selected.html", context)
