"""Write memories as lines of JSON."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from memories_app.visibility import memories_for_staff
from memoryproject.foundation import commands
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.process.storage import file_replaced
from sessions_app.conversations.chat_queries import chat_chosen
from sessions_app.memories.transfer import VECTORS_TELL, memories_export


class Command(commands.ReportingCommand):
    json_help = ""

    arguments = [
        commands.option("--chat", metavar="WHATSAPP_CHAT"),
        commands.option("--out", metavar="FILE", type=Path),
        commands.flag("--embeddings"),
        commands.flag("--redact"),
    ]

    def run(self, options: dict[str, Any]) -> None:
        if options["redact"] and options["embeddings"]:
            raise commands.UsageError(VECTORS_TELL)
        memories = memories_for_staff()
        if options["chat"]:
            memories = memories.filter(chat_id=chat_chosen(options["chat"]).pk)
        try:
            total = memories.count()
            lines = memories_export(
                memories=memories,
                actor=COMMAND_LINE,
                embeddings=options["embeddings"],
                redacted=options["redact"],
            )
            if options["out"]:
                written = _write(options["out"], lines, total)
                redacted = ", redacted" if options["redact"] else ""
                self.stderr.write(f"{written} memories were written to {options['out']}{redacted}.")
            else:
                for line in lines:
                    self.stdout.write(line)
        except OSError as error:
            raise CommandError(f"{options['out']} can't be written: {error.strerror}.") from error


def _write(path: Path, lines: Iterable[str], total: int) -> int:
    """Write the lines, and return how many.

    Raises CommandError if the target is there and isn't a file: a device such as /dev/stdout would
    be replaced, too.
    """
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is not a file. Without --out, standard output is written.")
    progress = commands.ProgressBar(sys.stderr)
    written = 0
    with file_replaced(path) as file:
        for written, line in enumerate(lines, start=1):
            file.write(line.encode() + b"\n")
            progress(written, max(total, written))
    return written
