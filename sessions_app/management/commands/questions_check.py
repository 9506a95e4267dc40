"""Ask the question set again, and tell whether what must be recalled is found."""

from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.commands import ReportingCommand, flag, option
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.models import CheckQuestion
from sessions_app.models.trials import QuestionState
from sessions_app.turns.dependencies import build_turn_dependencies
from sessions_app.turns.question_set import questions_check


class Command(ReportingCommand):
    refusals = {**ReportingCommand.refusals, EmbedderError: "No question could be asked: {error}"}

    arguments = [option("--min", type=float, default=100.0, metavar="PERCENT"), flag("--texts")]

    def run(self, options: dict[str, Any]) -> None:
        found = questions_check(dependencies=build_turn_dependencies(), now=timezone.now())
        checked = [question for question in found if question.state != QuestionState.OFF]
        lost = [question for question in checked if question.state == QuestionState.FAILS]
        percent = 100.0 * (len(checked) - len(lost)) / len(checked) if checked else 100.0
        rows = [_row(question, with_texts=options["texts"]) for question in lost]
        report = {"questions": len(checked), "lost": rows, "percent": round(percent, 1)}
        lines = [" ".join(map(str, row.values())) for row in rows]
        says = f"{len(checked) - len(lost)} of {len(checked)} questions find what they expect."
        none = "The question set has nothing that could be expected: there is nothing to check."
        self.report(options, report, "\n".join([*lines, says if checked else none]))
        if percent < options["min"]:
            raise CommandError(f"{percent:.1f} of 100 are found, fewer than {options['min']:g}.")


def _row(question: CheckQuestion, *, with_texts: bool) -> dict[str, str]:
    turn, memory = getattr(question.message, "turn", None), question.memory_id
    row = {"question_id": str(question.pk), "turn_id": str(turn.turn_id) if turn else ""}
    row["memory_id"] = str(memory or "")
    if with_texts:
        text = Memory.objects.filter(pk=memory).values_list("content", flat=True).first() or ""
        row |= {"question": question.asked, "expected": question.expected, "memory": text}
    return row
