"""Register the pages of turns, with those for trials and for taking a chat over."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from sessions_app.models import Turn
from sessions_app.takeover.admin.views import takeover_paths
from sessions_app.trials.presentation import trial_paths
from sessions_app.turns.presentation import TurnAdmin


@admin.register(Turn)
class TurnPages(TurnAdmin):
    """The pages of turns, trials and takeovers.

    Trials and takeover lie above answering in the layers, so their pages are added here.
    """

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        return [*takeover_paths(wrap), *trial_paths(wrap), *super().get_urls()]
