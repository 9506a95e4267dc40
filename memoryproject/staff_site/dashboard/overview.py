"""The dashboard's page, and its figures, which are refreshed while the page is open."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from memoryproject.foundation.admin_kit.periods import TODAY
from memoryproject.staff_site.dashboard.board import Board, board_for, sees_figures
from memoryproject.staff_site.dashboard.figures import period_choices, period_chosen
from memoryproject.staff_site.dashboard.tiles import Tile


def overview_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context that the page needs besides that of every page."""
    period = period_chosen(request, TODAY)
    board = board_for(request.user, period=period, now=timezone.now())
    return {
        "period": period,
        "periods": period_choices(),
        "figures": _shown(request, board),
        "tag": _tag(board),
    }


@never_cache
@require_safe
def figures_page(request: HttpRequest) -> HttpResponseBase:
    """Return the figures alone; 304 if the browser shows the current ones."""
    if not sees_figures(request.user):
        raise PermissionDenied
    board = board_for(request.user, period=period_chosen(request, TODAY), now=timezone.now())
    tag = _tag(board)
    same = get_conditional_response(request, etag=tag)
    if same is not None:
        return same
    answer = render(request, "dashboard/fragment.html", {"figures": _shown(request, board)})
    answer["ETag"] = tag
    return answer


def _shown(request: HttpRequest, board: Board) -> str:
    return render_to_string("dashboard/board.html", {"board": board}, request)


def _tag(board: Board) -> str:
    """Return an ETag of the figures.

    Sizes on the disk change by themselves at any moment: they alone are no reason to show all
    figures anew.
    """
    steady = replace(board, now=[_steady(tile) for tile in board.now])
    return quote_etag(hashlib.sha256(repr(steady).encode()).hexdigest())


def _steady(tile: Tile) -> Tile:
    return replace(tile, value="", notes=()) if tile.is_restless else tile
