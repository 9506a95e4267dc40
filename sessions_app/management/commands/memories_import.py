"""Bring in memories from lines of JSON."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import CommandError
from django.db import DatabaseError

from memoryproject.foundation import commands
from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.embedding.facade import embedder
from sessions_app.memories.transfer import ImportReport, lines_of, memories_import

SHOWN = 20
STOPPED = "Stopped: {error} What is in stays; run it again to go on."


class Command(commands.ReportingCommand):
    """Can be run again at any time: what is there already stays as it is."""

    fills_memory = True
    refusals = {EmbedderError: STOPPED, DatabaseError: STOPPED, KeyboardInterrupt: commands.GO_ON}

    arguments = [commands.option("file", metavar="FILE"), commands.flag("--no-vectors")]

    def run(self, options: dict[str, Any]) -> None:
        report = _import(options["file"], with_vectors=not options["no_vectors"])
        self.report(options, report.as_dict(), as_text(report), ensure_ascii=False)
        refused = len(report.errors) + report.errors_left_out
        if refused:
            raise CommandError(f"{refused} lines were refused: see the report.")


def _import(name: str, *, with_vectors: bool) -> ImportReport:
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            size = 0 if name == "-" else Path(name).stat().st_size
            return memories_import(
                lines=_lines(file, size),
                embedder=embedder() if with_vectors else None,
                actor=COMMAND_LINE,
            )
    except OSError as error:
        raise commands.UsageError(f"{name} can't be read: {error.strerror}.") from error


def _lines(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the lines, and show how much of the file is read; ``size``: 0 where it isn't known."""
    progress = commands.ProgressBar(sys.stderr)
    for line in lines_of(file):
        yield line
        if size:
            progress(min(file.tell(), size), size)


def as_text(report: ImportReport) -> str:
    """Return the report for people."""
    refused = len(report.errors) + report.errors_left_out
    lines = [
        f"{report.created} memories came in, {report.duplicates} were there already, "
        f"{refused} lines were refused."
    ]
    lines += [f"  line {each['line']}: {each['detail']}" for each in report.errors[:SHOWN]]
    if refused > SHOWN:
        lines.append(f"  and {refused - SHOWN} more: --json has them")
    return "\n".join(lines)
