"""Fill an empty database with a month of a small business."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.commands import ProgressBar
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.staff_site.demo.business import create_setup, create_staff_actions, without_jobs
from memoryproject.staff_site.demo.cafe_week import CafeWeek
from memoryproject.staff_site.demo.story import DAYS, Story
from memoryproject.staff_site.demo.story_texts import recorded_chats
from sessions_app.models import Chat


class Command(BaseCommand):
    """Fills the database with records that can't be distinguished from real ones.

    This includes the audit log, which keeps them.
    """

    help = (
        "Fill an empty database with a month of a small café: conversations in English and "
        "Hebrew, memories, summaries, receipts, failed answers. For trying the admin out; never "
        "for a database that is to be used. Nothing is sent to anybody."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--force",
            action="store_true",
            help="Also where the database holds chats, other than those of `manage.py demo`.",
        )

        parser.add_argument(
            "--days",
            type=int,
            default=DAYS,
            help=f"The number of days on which passers-by write ({DAYS}).",
        )

        parser.add_argument(
            "--week",
            action="store_true",
            help="Tell a week of a small café in Brazil instead, and print it line by line.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        strangers = Chat.objects.exclude(whatsapp_chat__in=recorded_chats())
        if strangers.exists() and not options["force"]:
            raise CommandError(
                "This database holds chats. The demo's would stand among them: use an empty one "
                "(DATA_DIR), or --force."
            )
        if options["week"]:
            week = CafeWeek(timezone.now(), WordLlamaEmbedder())
            if week.has_begun():
                raise CommandError("Its people are here already: use an empty database (DATA_DIR).")
            # Programs that run would answer beside it: they see the week when it is over.
            with without_jobs(), transaction.atomic():
                for line in week.lines():
                    self.stdout.write(line)
            return
        story = Story(now=timezone.now(), embedder=WordLlamaEmbedder(), days=options["days"])
        with without_jobs():
            create_setup(story)
            story.tell(ProgressBar(sys.stderr))
            create_staff_actions(story)
        self.stdout.write(f"{Chat.objects.count()} chats. Read them: /admin/sessions_app/chat/")
