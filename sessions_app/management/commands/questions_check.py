"""Ask the question set again, and tell whether what must be recalled is found."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from memoryproject.foundation.commands import ReportingCommand
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.models.trials import QuestionState
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.question_set import RECALL_SETTINGS, Checked, questions_check, recall_rule


class Command(ReportingCommand):
    help = (
        "Recall the questions of the question set: those whose answers staff marked as right, and "
        "those that were written or imported. Is the expected memory, or a text with the expected "
        "words, recalled? Questions whose memory was erased or ended, and that expect no words, "
        "don't count. Exits with 1 if fewer than --min of 100 pass. Nothing is sent, no result is "
        "stored."
    )
    refusals = {**ReportingCommand.refusals, EmbedderError: "No question could be asked: {error}"}

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--min",
            type=float,
            default=100.0,
            metavar="PERCENT",
            help="How many of 100 must pass. Default: 100.",
        )
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"Check with another value of a setting ({', '.join(RECALL_SETTINGS)}), beside "
            "that in force. May be repeated.",
        )
        parser.add_argument(
            "--texts", action="store_true", help="Also print the questions and what they expect."
        )

    def run(self, options: dict[str, Any]) -> None:
        changed: dict[str, Any] = {}
        try:
            for name, _equals, text in (each.partition("=") for each in options["set"]):
                changed |= recall_rule(name.strip(), text.strip())
        except ValueError as error:
            raise CommandError(f"--set: {error}", returncode=2) from None
        checked = _counted(questions_check(dependencies=build_turn_dependencies(), changed=changed))
        rows = [
            _row(each, with_texts=options["texts"])
            for each in checked
            if each.state == QuestionState.FAILS
        ]
        percent = _percent(checked)
        report = {"questions": len(checked), "lost": rows, "percent": round(percent, 1)}
        lines = [" ".join(map(str, row.values())) for row in rows]
        found = f"{len(checked) - len(rows)} of {len(checked)} questions find what they expect."
        none = "The question set has nothing that could be expected: there is nothing to check."
        lines.append(found if checked else none)
        if changed:
            before = _percent(_counted(questions_check(dependencies=build_turn_dependencies())))
            report["percent_before"] = round(before, 1)
            lines.append(f"Without the change {before:.1f} of 100 do.")
        self.report(options, report, "\n".join(lines))
        if percent < options["min"]:
            raise CommandError(f"{percent:.1f} of 100 are found, fewer than {options['min']:g}.")


def _counted(checked: Sequence[Checked]) -> list[Checked]:
    return [each for each in checked if each.state != QuestionState.OFF]


def _percent(checked: Sequence[Checked]) -> float:
    passed = sum(each.state == QuestionState.PASSES for each in checked)
    return 100.0 * passed / len(checked) if checked else 100.0


def _row(each: Checked, *, with_texts: bool) -> dict[str, str]:
    question = each.question
    row = {"question_id": str(question.pk)}
    if turn := getattr(question.message, "turn", None):
        row["turn_id"] = str(turn.turn_id)
    if each.memory is not None:
        row["memory_id"] = str(each.memory.pk)
    if with_texts:
        memory = each.memory.content if each.memory else ""
        row |= {"question": question.asked, "expected": question.expected, "memory": memory}
    return row
