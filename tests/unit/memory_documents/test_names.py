"""How identifiers become names of files."""

from __future__ import annotations

import unicodedata
from datetime import date, timedelta

import pytest

from memories_app.memory_document_format.envelope import read_duration
from memories_app.memory_document_format.names import (
    Pattern,
    identifier_read,
    name_for,
    newest,
    numbered,
)
from memories_app.memory_document_format.strict_json import MemoryDocumentNameError
from tests.tables import table

DAY = date(2025, 11, 25)


@table(
    ("category", "identifier", "name"),
    [
        ("context", "feature-auth", "2025-11-25-feature-auth"),
        ("decisions", "auth-implementation", "auth-implementation"),
        ("interfaces", "auth-module", "auth-module"),
        ("handoffs", "task-42", "task-42"),
        ("context", "2025-11-24-feature-auth", "2025-11-24-feature-auth"),
        ("context", "2025-13-24-feature", "2025-11-25-2025-13-24-feature"),
        ("handoffs", "2025-11-24-call", "2025-11-24-call"),
        ("interfaces", "auth.session_v2", "auth.session_v2"),
        ("decisions", "החלטה על תשלום", "החלטה על תשלום"),
        ("decisions", "Preis+Größe (neu)", "Preis+Größe (neu)"),
        ("decisions", "🙂", "🙂"),
        ("decisions", "e\u0301tage", "étage"),
    ],
)
def test_the_name_and_the_date_of_context(category: str, identifier: str, name: str) -> None:
    assert name_for(category, identifier, DAY) == name


@table(
    "identifier",
    [
        "", " ", ".", "..", "../x", "a/b", "a\\b", "/etc/passwd", ".hidden", "-rf", "a..b",
        "a.", " a", "a ", "a\nb", "a\x00b", "a\x7fb", "a\u202eb", "a\u200bb", "a\u00a0b",
        "\ud800", "\ue000", "a:b", "a*", "a?", "a|b", 'a"b', "<a>", "con", "NUL", "aux.txt",
        "com1", "task-42.json", "TASK.JSON", "a" * 201, "א" * 101,
    ],
)  # fmt: skip
def test_what_cannot_be_a_file_everywhere_is_refused(identifier: str) -> None:
    for category in ("context", "handoffs"):
        with pytest.raises(MemoryDocumentNameError, match="The identifier"):
            name_for(category, identifier, DAY)


def test_the_longest_identifiers_leave_room_for_date_and_number() -> None:
    assert name_for("context", "א" * 100, DAY).endswith("א" * 100)
    assert name_for("decisions", "a" * 200, DAY) == "a" * 200


def test_names_are_compared_in_one_form_of_unicode_and_by_case() -> None:
    name = "étage"
    assert identifier_read(unicodedata.normalize("NFD", name)) == name
    assert newest("decisions", "Auth", ["auth"]) is None


@table(
    ("identifier", "names", "meant"),
    [
        ("auth", ["2025-11-24-auth", "2025-11-25-auth", "2025-11-26-feature-auth"],
         "2025-11-25-auth"),
        ("2025-11-24-auth", ["2025-11-24-auth", "2025-11-25-auth"], "2025-11-24-auth"),
        ("auth", ["auth"], "auth"),
        ("auth", ["auth", "2020-01-01-auth"], "2020-01-01-auth"),
        ("auth", ["2025-13-01-auth"], None),
        ("auth", [], None),
    ],
)  # fmt: skip
def test_context_means_the_newest_date(identifier: str, names: list[str], meant: str) -> None:
    assert newest("context", identifier, names) == meant


def test_other_categories_have_no_dates() -> None:
    assert newest("handoffs", "auth", ["2025-11-24-auth"]) is None


def test_a_name_that_is_taken_in_the_archive_gets_the_next_number() -> None:
    assert numbered("task", ["other", "task-2", "task.x"]) == "task"
    assert numbered("task", ["task"]) == "task.2"
    assert numbered("task", ["task", "task.2", "task.10", "task.010x"]) == "task.11"


@table(
    ("pattern", "fits"),
    [
        ("auth*", True),
        ("auth", True),
        ("2025-11-*", True),
        ("auth*.json", True),
        ("*", True),
        ("a[a-z]th", True),
        ("[!b]uth", True),
        ("a?th", True),
        ("Auth*", False),
        ("uth", False),
        ("", None),
        ("a" * 201, None),
    ],
)
def test_patterns_fit_with_and_without_the_date(pattern: str, fits: bool | None) -> None:
    if fits is None:
        with pytest.raises(MemoryDocumentNameError, match="pattern"):
            Pattern(pattern)
    else:
        assert Pattern(pattern).fits("context", "2025-11-25-auth") is fits


def test_patterns_with_many_stars_end_soon() -> None:
    assert not Pattern("*a" * 90 + "b").fits("decisions", "a" * 230)


@table(
    ("text", "duration"),
    [
        ("7d", timedelta(days=7)),
        ("24h", timedelta(days=1)),
        ("2w", timedelta(weeks=2)),
        ("30m", timedelta(minutes=30)),
        ("45s", timedelta(seconds=45)),
        ("0d", timedelta()),
    ],
)
def test_durations(text: str, duration: timedelta) -> None:
    assert read_duration(text) == duration


@table("text", ["", "7", "d", "-7d", "7 d", "7D", "1.5h", "٧d", "7days", "6000w"])
def test_what_is_no_duration_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="no duration such as 7d|longer than"):
        read_duration(text)
