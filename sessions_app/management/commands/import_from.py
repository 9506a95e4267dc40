"""Move conversations and memories in from another product, or from an archive of this one."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import GO_ON, ReportingCommand, UsageError
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.process.command_options import MEMORY_OFF
from sessions_app.embedding.facade import embedder
from sessions_app.moving.kinds import READERS, move_in
from sessions_app.moving.records import MoveError, Options
from sessions_app.moving.sources import Source
from sessions_app.moving.store_records import Report

STOPPED = "Stopped: {error} What is in stays; run it again to go on."
SHOWN = 50


class Command(ReportingCommand):
    """Can be run again at any time: what is there stays as it is."""

    help = (
        "Bring in an export of mem0, Zep, Honcho, a LangGraph store or Chatwoot (JSON, lines of "
        "JSON or CSV), a chat that WhatsApp exported (_chat.txt or its Zip), or an archive that "
        "export_to wrote. Nothing of it is answered. What can't "
        "be read is named by its place, and the rest comes in."
    )
    refusals = {
        MoveError: "{error}",
        EmbedderError: STOPPED,
        DatabaseError: STOPPED,
        KeyboardInterrupt: GO_ON,
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", choices=list(READERS), help="What wrote the file.")
        parser.add_argument("path", metavar="PATH", type=Path, help="A file, a folder or a Zip.")
        parser.add_argument(
            "--chat", metavar="WHATSAPP_CHAT", default="", help="Everything comes into this chat."
        )
        parser.add_argument(
            "--business",
            metavar="NAME",
            action="append",
            default=[],
            help="The business's or the assistant's name in the file; may be given several times.",
        )
        parser.add_argument(
            "--preview", action="store_true", help="Tell what would come in; store nothing."
        )
        parser.add_argument(
            "--all-or-nothing", action="store_true", help="Store nothing if anything can't be read."
        )
        parser.add_argument(
            "--no-vectors",
            action="store_true",
            help="Don't make vectors of memories: they are then found by their words.",
        )
        super().add_arguments(parser)

    def run(self, options: dict[str, Any]) -> None:
        if not str(options["path"]).strip() or "\x00" in str(options["path"]):
            raise UsageError("PATH: a file is needed.")
        if not settings.ENABLE_MEMORY_SYSTEM:
            self.stderr.write(MEMORY_OFF)
        report = move_in(
            options["kind"],
            Source(options["path"]),
            Options(options["chat"], options["business"]),
            actor=COMMAND_LINE,
            embedder=None if options["no_vectors"] else embedder(),
            preview=options["preview"],
            all_or_nothing=options["all_or_nothing"],
        )
        self.report(options, report.as_dict(), as_text(report), ensure_ascii=False, indent=1)
        sys.stdout.flush()
        if report.refused:
            raise CommandError("Nothing was stored: see what can't be read.")
        if report.bad:
            raise CommandError(f"{report.bad} could not be read: see the report.")


def as_text(report: Report) -> str:
    """Return the report for people."""
    is_dry = report.preview or report.refused
    lines = [
        f"{report.messages} messages and {report.memories} memories "
        f"{'would come' if is_dry else 'came'} in, {report.files} files; {report.there} were there "
        f"already, {report.skipped} were left out, {report.bad} can't be read."
    ]
    for chat, counts in report.chats.items():
        held = ", ".join(f"{number} {what}" for what, number in counts.items())
        lines.append(f"  {chat or 'no chat'}: {held}")
    if is_dry:
        lines += [f"  {_shown(each)}" for each in report.first]
    lines += [f"  {one['place']}: {one['why']}" for one in report.notes[:SHOWN]]
    if len(report.notes) > SHOWN:
        lines.append(f"  and {report.skipped + report.bad - SHOWN} more: --json has them")
    return "\n".join(lines)


def _shown(one: dict[str, Any]) -> str:
    """Return a record of the preview: whether times and roles were understood shows in it."""
    who = f"{one.get('from', '')}{' (the business)' if one.get('ours') else ''}"
    about = (one["place"], one.get("at", ""), who or one["chat"])
    return f"{', '.join(filter(None, about))}: {one['text'] or '–'}"
