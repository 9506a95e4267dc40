"""Fill an empty database with a month of a small business."""

import sys
from typing import Any

from django.core.management.base import CommandError
from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.commands import DeclaredCommand, ProgressBar, flag, option
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.staff_site.demo import business, cafe_week, story_texts
from memoryproject.staff_site.demo.story import DAYS, Story
from sessions_app.models import Chat


class Command(DeclaredCommand):
    """Fills the database with records that can't be distinguished from real ones.

    This includes the audit log, which keeps them.
    """

    arguments = [flag("--force"), option("--days", type=int, default=DAYS), flag("--week")]

    def handle(self, *args: Any, **options: Any) -> None:
        strangers = Chat.objects.exclude(whatsapp_chat__in=story_texts.recorded_chats())
        if strangers.exists() and not options["force"]:
            raise CommandError(
                "This database holds chats. The demo's would stand among them: use an empty one "
                "(DATA_DIR), or --force."
            )
        if options["week"]:
            week = cafe_week.CafeWeek(timezone.now(), WordLlamaEmbedder())
            if week.has_begun():
                raise CommandError("Its people are here already: use an empty database (DATA_DIR).")
            # Programs that run would answer beside it: they see the week when it is over.
            with business.without_jobs(), transaction.atomic():
                for line in week.lines():
                    self.stdout.write(line)
            return
        story = Story(now=timezone.now(), embedder=WordLlamaEmbedder(), days=options["days"])
        with business.without_jobs():
            business.create_setup(story)
            story.tell(ProgressBar(sys.stderr))
            business.create_staff_actions(story)
        self.stdout.write(f"{Chat.objects.count()} chats. Read them: /admin/sessions_app/chat/")
