"""Make a token for the API."""

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from django.utils.dateparse import parse_date, parse_datetime
from django.utils.timezone import now

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import ReportingCommand, UsageError, flag, option
from memoryproject.foundation.rest_kit.models import READ, SCOPE_HELP, SCOPES
from memoryproject.foundation.rest_kit.tokens import TokenError, token_create
from sessions_app.conversations.chat_queries import token_chats

MEANINGS = "; ".join(f"{name}: {text}" for name, text in SCOPE_HELP.items())
DAYS = re.compile(r"([1-9][0-9]{0,4})d")


class Command(ReportingCommand):
    json_help = ""

    arguments = [
        option("name"),
        flag("--read-only"),
        option(
            "--scope",
            action="append",
            choices=SCOPES,
            help=f"May do this; give it several times. Default: all. {MEANINGS}.",
        ),
        option("--chat", action="append", metavar="WHATSAPP_CHAT"),
        option("--expires", metavar="WHEN"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        if options["read_only"] and options["scope"]:
            raise UsageError("Give either --read-only or --scope.")
        scopes = [READ] if options["read_only"] else options["scope"] or SCOPES
        try:
            made = token_create(
                name=options["name"],
                scopes=scopes,
                expires_at=_moment(options["expires"]),
                chat_ids=token_chats(options["chat"]) if options["chat"] else None,
                actor=COMMAND_LINE,
            )
        except TokenError as error:
            raise UsageError(str(error)) from error
        self.stdout.write(made.secret)


def _moment(text: str | None) -> datetime | None:
    """Parse the option's time. Raises CommandError."""
    if text is None:
        return None
    if days := DAYS.fullmatch(text):
        return now() + timedelta(days=int(days[1]))
    try:
        found = parse_datetime(text)
        day = None if found else parse_date(text)
        if found is not None and found.tzinfo is not None:
            found = found.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        found = day = None
    if day is not None:
        found = datetime(day.year, day.month, day.day)
    if found is None:
        raise UsageError(f"--expires: {text!r} is no time. Write 90d or 2027-01-31.")
    return found.replace(tzinfo=timezone.utc) if found.tzinfo is None else found
