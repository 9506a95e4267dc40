"""Move conversations and memories in from another product, or from an archive of this one."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import GO_ON, ReportingCommand, UsageError, flag, option
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.embedding.facade import embedder
from sessions_app.moving import kinds, records, sources, store_records

STOPPED = "Stopped: {error} What is in stays; run it again to go on."
SHOWN = 50


class Command(ReportingCommand):
    """Can be run again at any time: what is there stays as it is."""

    fills_memory = True
    refusals = {
        records.MoveError: "{error}",
        EmbedderError: STOPPED,
        DatabaseError: STOPPED,
        KeyboardInterrupt: GO_ON,
    }

    arguments = [
        option("kind", choices=list(kinds.READERS)),
        option("path", metavar="PATH", type=Path),
        option("--chat", metavar="WHATSAPP_CHAT", default=""),
        option("--business", metavar="NAME", action="append", default=[]),
        flag("--preview"),
        flag("--all-or-nothing"),
        flag("--no-vectors"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        if not str(options["path"]).strip() or "\x00" in str(options["path"]):
            raise UsageError("PATH: a file is needed.")
        report = kinds.move_in(
            options["kind"],
            sources.Source(options["path"]),
            records.Options(options["chat"], options["business"]),
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


def as_text(report: store_records.Report) -> str:
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
