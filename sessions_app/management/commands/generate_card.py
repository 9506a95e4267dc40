"""Make the memory card of a session (seed 001)."""

import json
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError

from cards_app.memory_card import Card
from memoryproject.foundation.commands import ReportingCommand, UsageError, option
from sessions_app.cards.dependencies import card_maker
from sessions_app.cards.make_cards import SessionBusyError, SessionNotFoundError

NO_SUCH_SESSION = (
    "There is no session {}. Its id stands in the admin, under Conversations, Sessions."
)


class Command(ReportingCommand):
    json_help = ""
    refusals = {**ReportingCommand.refusals, SessionBusyError: "{error}"}

    arguments = [
        option("session_id", metavar="SESSION_ID"),
        option("--format", choices=("yaml", "json"), default="yaml"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        session_id = _id(options["session_id"])
        try:
            stored = card_maker()(session_id=session_id)
        except SessionNotFoundError as error:
            raise CommandError(NO_SUCH_SESSION.format(session_id)) from error
        self.stdout.write(_written(stored.card, options["format"]))


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise UsageError(
            f"SESSION_ID: {text!r} is no id such as 3f2b8c1e-0000-4000-8000-000000000000."
        ) from None


def _written(card: Card, form: str) -> str:
    if form == "json":
        return json.dumps(card.to_dict(), ensure_ascii=False, indent=2)
    return card.to_yaml().rstrip("\n")
