"""Ask again what staff marked as answered rightly, and tell whether the same memories are found."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from memoryproject.foundation.commands import ReportingCommand, flag, option
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.turns.change_trial import Checked, marked_check
from sessions_app.turns.dependencies import build_turn_dependencies


class Command(ReportingCommand):
    help = (
        "Recall the questions whose answers staff rated good, and compare: is the memory that came "
        "first then still recalled? Memories that were erased, replaced or ended since don't "
        "count. Exits with 1 if fewer than --min of 100 are found. Nothing is sent or stored."
    )
    refusals = {**ReportingCommand.refusals, EmbedderError: "No question could be asked: {error}"}

    arguments = [
        option(
            "--min",
            type=float,
            default=100.0,
            metavar="PERCENT",
            help="How many of 100 must be found. Default: 100.",
        ),
        flag("--texts", "Also print the questions and the memories."),
    ]

    def run(self, options: dict[str, Any]) -> None:
        checked = marked_check(dependencies=build_turn_dependencies())
        lost = [each for each in checked if not each.found]
        percent = 100.0 * (len(checked) - len(lost)) / len(checked) if checked else 100.0
        rows = [_row(each, with_texts=options["texts"]) for each in lost]
        report = {"questions": len(checked), "lost": rows, "percent": round(percent, 1)}
        lines = [" ".join(map(str, row.values())) for row in rows]
        found = f"{len(checked) - len(lost)} of {len(checked)} questions find their memory."
        none = "No answer whose memories are still there was rated good: there is nothing to check."
        self.report(options, report, "\n".join([*lines, found if checked else none]))
        if percent < options["min"]:
            raise CommandError(f"{percent:.1f} of 100 are found, fewer than {options['min']:g}.")


def _row(each: Checked, *, with_texts: bool) -> dict[str, str]:
    row = {"turn_id": str(each.turn.turn_id), "memory_id": str(each.memory.pk)}
    if with_texts and each.turn.message is not None:
        row |= {"question": each.turn.message.content, "memory": each.memory.content}
    return row
