"""Write memories as lines of JSON."""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from memories_app.visibility import memories_for_staff
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.commands import ReportingCommand, UsageError
from memoryproject.foundation.process.command_options import ProgressBar
from sessions_app.conversations.chat_queries import chat_at, chat_option
from sessions_app.memories.transfer import VECTORS_TELL, memories_export


class Command(ReportingCommand):
    help = (
        "Write all memories, also superseded and waiting ones, as NDJSON: a line each, with its "
        "revisions and tellings, to standard output or to a file. memories_import reads it."
    )

    json_help = ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--chat", metavar="WHATSAPP_CHAT", help="Only memories that came from this chat."
        )
        parser.add_argument(
            "--out", metavar="FILE", type=Path, help="The file to write; it is replaced as a whole."
        )
        parser.add_argument(
            "--embeddings", action="store_true", help="With the vectors of every model."
        )
        parser.add_argument(
            "--redact",
            action="store_true",
            help="Without telephone numbers, addresses and other personal data. Each line says so, "
            "and memories_import refuses it.",
        )

    def run(self, options: dict[str, Any]) -> None:
        if options["redact"] and options["embeddings"]:
            raise UsageError(VECTORS_TELL)
        memories = memories_for_staff()
        if options["chat"]:
            chat = chat_at(options["chat"])
            if chat is None:
                chat_option(options["chat"], option="--chat")
                raise CommandError(f"There is no chat {options['chat']}.")
            memories = memories.filter(chat_id=chat.pk)
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
    """Write a temporary file next to the target and then rename it.

    So the file is never incomplete. Only its owner can read it. Raises CommandError if the target
    is there and isn't a file: a device such as /dev/stdout would be replaced, too.
    """
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is not a file. Without --out, standard output is written.")
    progress = ProgressBar(sys.stderr)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    written = 0
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
                written += 1
                progress(written, max(total, written))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return written
