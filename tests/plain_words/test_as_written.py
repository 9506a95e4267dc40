"""Questions about the hours, commands in plain words and stop words, as people write them.

``as_written.json`` was written without a look at the word lists. They were mended by its tuning
half; then the others, each written after the mending before, were read and mended by, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest

from sessions_app.conversations.phrases import languages
from sessions_app.conversations.plain_words import bare_words, parse_command, small_talk
from sessions_app.hours import Hours, OtherDay, Span
from sessions_app.hours_answers import day_line, hours_answer, status_lines, week_lines
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.limits.intake import asks_to_stop, folded
from tests.tables import table

WRITTEN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "as_written.json").read_text(encoding="utf-8")
)
HALVES = ("tuning", "held_out")
HOURS_SETS = (*HALVES, "fresh", "last")
# A Tuesday.
NOW = datetime(2026, 12, 1, 9, 0, tzinfo=timezone.utc)
TODAY = NOW.date()
# The hours of each day tell which day an answer is about.
WEEK = tuple((Span(480 + 5 * day, 1080 + 5 * day),) for day in range(7))


# A text, whether it was taken rightly (None: not at all), and whether it is to be taken.
Taken = tuple[str, bool | None, bool]


class Found(NamedTuple):
    """How a half went: which answers were right, wrong, and missing."""

    right: list[str]
    wrong: list[str]
    missed: list[str]

    @property
    def precision(self) -> float:
        return len(self.right) / (len(self.right) + len(self.wrong) or 1)

    @property
    def recall(self) -> float:
        return len(self.right) / (len(self.right) + len(self.missed) or 1)


def found(results: Iterator[Taken]) -> Found:
    right, wrong, missed = list[str](), list[str](), list[str]()
    for text, taken, expected in results:
        if taken:
            right.append(text)
        if taken is False:
            wrong.append(text)
        if expected and not taken:
            missed.append(text)
    return Found(right, wrong, missed)


def hours_in(language: str) -> Hours:
    names = WRITTEN["hours"][language]["holidays"]
    days = {date.fromisoformat(day): OtherDay((), name) for day, name in names.items()}
    return Hours(WEEK, ZoneInfo("UTC"), days)


def answers(language: str, expected: Any) -> list[list[str]]:
    """Return the answers that are right, each as its lines."""
    hours = hours_in(language)
    status = status_lines(hours, language, NOW)
    week = list(week_lines(hours, language, TODAY))
    if isinstance(expected, list):
        days = [date.fromisoformat(day) for day in expected]
        line = [day_line(hours, day, language, TODAY) for day in days]
        return [line, status] if days == [TODAY] else [line]
    if expected == "weekend":
        first = 3 if language in ("he", "ar") else 4
        days = [TODAY + timedelta(days=first + step) for step in range(2)]
        return [[day_line(hours, day, language, TODAY) for day in days], week]
    today = [day_line(hours, TODAY, language, TODAY)]
    return {"now": [status], "any": [status, week, today]}[expected]


def asked(half: str) -> Iterator[Taken]:
    for language, data in WRITTEN["hours"].items():
        for text, expected in data[half]:
            answer = hours_answer(text, hours=hours_in(language), now=NOW, language=language)
            right = answers(language, expected) if expected else []
            yield text, None if answer is None else answer.splitlines() in right, bool(expected)


def commanded(half: str) -> Iterator[Taken]:
    for language, data in WRITTEN["words"].items():
        for text, expected in data[half]:
            command = parse_command(text)
            talk = small_talk(text, language=language)
            kind = command.name if command else talk[0] if talk and expected else ""
            yield text, kind == expected if kind else None, bool(expected)


def stopped(half: str) -> Iterator[Taken]:
    words = build_usage_limits().stop_words
    for data in WRITTEN["stop"].values():
        for text, expected in data[half]:
            is_word = folded(text) in words or bare_words(text) in words
            is_taken = is_word or asks_to_stop(text)
            yield text, bool(expected) if is_taken else None, bool(expected)


@table("half", HOURS_SETS)
def test_hours(half: str) -> None:
    counted = found(asked(half))
    assert (counted.precision >= 0.97, counted.recall >= 0.8) == (True, True), counted


@pytest.mark.parametrize(
    "line",
    [
        line
        for line in (Path(__file__).parent / "hours_asked.txt").read_text("utf-8").splitlines()
        if not line.startswith("#")
    ],
)
def test_short_questions_about_a_day(line: str) -> None:
    """At first sight 78 of 105 were answered, of the next 77 of 88, then 46 of 50."""
    day, language, place, text = line.split("\t")
    hours = hours_in("en")
    before = ["are you open today?"] if place == "more" else []
    answer = hours_answer(text, hours=hours, now=NOW, language=language, before=before)
    lines = {
        day_line(hours, date.fromisoformat(day), each, TODAY)
        if day[0].isdigit()
        else "\n".join(status_lines(hours, each, NOW))
        for each in languages()
    }
    assert answer is None if day == "-" else answer in lines


@pytest.mark.parametrize("half", HALVES)
def test_commands(half: str) -> None:
    counted = found(commanded(half))
    assert (counted.precision >= 0.97, counted.recall >= 0.8) == (True, True), counted


@table("language", WRITTEN["no_command"])
def test_near_misses_forget_nothing_and_stop_nothing(language: str) -> None:
    near = WRITTEN["no_command"][language]
    assert [text for text in near if parse_command(text)] == []
    words = build_usage_limits().stop_words
    near = [*near, *WRITTEN["no_stop"][language]]
    assert [text for text in near if folded(text) in words or asks_to_stop(text)] == []


@pytest.mark.parametrize("half", HALVES)
def test_stop_words(half: str) -> None:
    counted = found(stopped(half))
    assert (counted.wrong, counted.recall >= 0.8) == ([], True), counted


# What is to be remembered, and, behind an empty line, what isn't.
TOLD, NOT_TOLD = (
    part.splitlines()
    for part in (Path(__file__).parent / "facts_told.txt").read_text(encoding="utf-8").split("\n\n")
)


@table("text", TOLD)
def test_a_fact_is_remembered_with_or_without_that(text: str) -> None:
    command = parse_command(text)
    assert command is not None
    assert command.name == "remember"
    assert text.endswith(command.argument)


@table("text", NOT_TOLD)
def test_what_tells_no_fact_is_not_remembered(text: str) -> None:
    assert getattr(parse_command(text), "name", "") != "remember"
