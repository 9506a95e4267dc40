"""Register the pages of turns together with the pages for taking a chat over."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from sessions_app.models import Turn
from sessions_app.takeover.admin.views import takeover_paths
from sessions_app.turns.presentation import TurnAdmin


@admin.register(Turn)
class TurnPages(TurnAdmin):
    """The pages of turns and of takeovers.

    Takeover lies above answering in the layers, so it adds its pages here.
    """

    def get_urls(self) -> list[Any]:
        return [*takeover_paths(self.admin_site.admin_view), *super().get_urls()]
