"""Register the admin pages of every feature."""

from typing import Any, ClassVar

from django.contrib import admin

import sessions_app.cards.admin
import sessions_app.conversation_views.chat_pages
import sessions_app.conversation_views.message_pages
import sessions_app.documents.admin
import sessions_app.forgetting.receipt_pages
import sessions_app.forgetting.run_pages
import sessions_app.inbound.admin
import sessions_app.inbox.admin
import sessions_app.memories.memory_pages
import sessions_app.profile_page
import sessions_app.question_pages
import sessions_app.rule_pages
import sessions_app.summaries.admin
import sessions_app.takeover.canned_replies
import sessions_app.tokens
import sessions_app.webhook_endpoints.admin  # noqa: F401 importing registers
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, page_paths
from sessions_app.models import Turn
from sessions_app.outcomes.outcome_pages import OUTCOME_PAGES
from sessions_app.takeover.views import TAKEOVER_PAGES
from sessions_app.trials.change_trial_page import change_trial_page
from sessions_app.trials.presentation import trials_page
from sessions_app.turns.presentation import TurnAdmin


@admin.register(Turn)
class TurnPages(TurnAdmin):
    """The pages of turns, trials, outcomes and takeovers.

    Trials, outcomes and takeover lie above answering in the layers, so their pages are added here.
    """

    own_pages: ClassVar[Any] = {
        "trials": OwnPage("<int:turn_id>/trials/", trials_page, "GET HEAD POST"),
        **OUTCOME_PAGES,
        "change_trial": OwnPage("change-trial/", change_trial_page, "POST"),
    }

    def get_urls(self) -> list[Any]:
        about_chats = page_paths(self.admin_site, TAKEOVER_PAGES, prefix="sessions_app_chat_")
        return [*about_chats, *super().get_urls()]
