"""Talk to the assistant in the terminal."""

import json
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError
from django.utils import timezone

from memoryproject.checks import SETTINGS
from memoryproject.foundation.commands import ReportingCommand, UsageError, flag, option
from memoryproject.foundation.process.storage import is_caused_by_full_disk
from sessions_app.conversations import chat_queries, phrases
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.synchronous_chat import NoAnswerError, Talk, talk
from sessions_app.turns.dependencies import build_turn_dependencies

NOBODY = "console@c.us"


class Command(ReportingCommand):
    """Talk to the assistant: each line is one message; an empty line or Ctrl-D ends it."""

    # Not those of the addresses and the admin: importing these takes longer than an answer.
    requires_system_checks = (SETTINGS,)

    # Only one line is answered as JSON.
    json_help = ""
    fills_memory = True

    arguments = [
        option("--as", dest="whatsapp_chat", metavar="WHATSAPP_CHAT"),
        option("--message", metavar="TEXT"),
        flag("--json"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        given = options["whatsapp_chat"]
        chat = next(iter(sorted(settings.GODFATHER_PHONE)), NOBODY)
        if given is not None:
            chat = chat_queries.chat_option(given, option="--as")
        if options["message"] is not None:
            talk = self._say(chat, options["message"])
            self.stdout.write(_as_json(talk) if options["json"] else talk.reply)
        elif options["json"]:
            raise UsageError("--json needs --message.")
        else:
            self._converse(chat)

    def _converse(self, chat: str) -> None:
        self.stderr.write(f"You are {chat}. An empty line ends the conversation.")
        while True:
            self.stderr.write("> ", ending="")
            self.stderr.flush()
            line = sys.stdin.readline().strip()
            if not line:
                return
            self.stdout.write(self._say(chat, line).reply)
            self.stdout.flush()

    def _say(self, chat: str, text: str) -> Talk:
        try:
            return talk(
                whatsapp_chat=chat,
                content=text,
                dependencies=build_turn_dependencies(),
                rules=build_intake_rules(),
                now=timezone.now(),
            )
        except NoAnswerError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            if is_caused_by_full_disk(error, settings.DATA_DIR):
                raise CommandError(phrases.text_for("storage_full", "en")) from error
            raise


def _as_json(talk: Talk) -> str:
    """Return the body that POST chat/ answers."""
    # The API's packages are slow to import, and only --json needs them.
    from sessions_app.inbound.chat_api import answer_of  # noqa: PLC0415

    return json.dumps(answer_of(talk), ensure_ascii=False, indent=2)
