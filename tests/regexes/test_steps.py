"""No regular expression of the project takes more than linear time, whatever a stranger writes.

Nothing is measured with a clock: `Matcher` counts the steps on texts that are made from the syntax
tree of each expression.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from fnmatch import translate
from pathlib import Path
from typing import Any

import pytest

from memoryproject.foundation.redaction.patterns import NAMED, SECRETS
from sessions_app.conversations import phrases
from sessions_app.promises.promise_patterns import patterns as promise_patterns
from sessions_app.turns.prompt import _SPEAKER
from tests.regexes.adversarial import shapes
from tests.regexes.found import AT_THE_BEGINNING, all_found
from tests.regexes.steps import Matcher, TooManyStepsError

pytestmark = pytest.mark.slow

SIZE = 80
MOST = 400_000
# The shapes that take most steps with half the size are tried with the size, and with twice of it.
# Twice the text may take little more than twice the steps; quadratic is four times.
TRIED_AGAIN = 6
MOST_GROWTH = 3
# As many texts show of each expression that the matcher does what the standard library does.
COMPARED = 20

NAME = "a1 -" * 60
LANGUAGES = Path(phrases.__file__).with_name("languages")
REQUEST_FORMS = [
    form
    for path in sorted(LANGUAGES.glob("*.json"))
    if (form := json.loads(path.read_text(encoding="utf-8")).get("request_forms"))
]
# Those that are made in a function: why their own length is bounded, and the hardest that are made.
MADE_WHEN_CALLED = {
    "f\"({'|'.join(map(re.escape, self.schemes))})://\\\\S+\"": (
        "words of the program",
        ["(http|https)://\\S+"],
    ),
    "f'(?<![a-z0-9]){part}(?![a-z0-9])'": ("words of the program", ["(?<![a-z0-9])e5(?![a-z0-9])"]),
    "f'(?<!\\\\w)@\\\\+?(?:{ours})(?!\\\\w)'": (
        "names have at most 60 characters",
        [rf"(?<!\w)@\+?(?:{re.escape('a1 -' * 15)}|4915550142)(?!\w)"],
    ),
    "re.escape(text)": ("names have at most 255 characters, and it is not longer", []),
    "re.escape(name) + '(?:\\\\.(\\\\d{1,9}))?'": (
        "names have at most 255 characters",
        [re.escape(NAME) + r"(?:\.(\d{1,9}))?"],
    ),
    "f'\\\\({re.escape(CLIENTS_MEMORY + name)}, {cut}'": (
        "names in labels have at most 60 characters",
        [rf"\({re.escape('memory of ' + 'a1 -' * 15)}, (?=[^()\n]+\) \[forgotten\])"],
    ),
    'f"(?<![\\\\w\'])(?:{fold(patterns)}){_END}"': ("texts have at most 300 characters", []),
    "f\"(?<![\\\\w'])[והבל]{{0,2}}-?(?:{fold(words)})(?![\\\\w'])\"": (
        "texts have at most 300 characters",
        [],
    ),
    "f'(?<!\\\\w)(?:{words})(?!\\\\w)'": ("texts have at most 300 characters", []),
    "f'(?<!\\\\w)(?:{each}){after}'": ("texts have at most 300 characters", []),
    "f\"(?<!\\\\S)(?:{'|'.join(lists[name])})(?!\\\\w)\"": (
        "words of the program",
        [
            each.pattern
            for name in ("own", "coming", "planned", "dated", "offers", "done", "sent", "was_sent")
            for each in promise_patterns(name).values()
        ],
    ),
    "pattern": ("kept in a table, where it is found", []),
    "each": ("kept in a table, where it is found", []),
    "whole": ("kept under a name, where it is found", []),
    "of": ("kept in a table, where it is found", []),
    "each['form']": ("kept in a table, where it is found", []),
    "_TABLE[thing]": ("texts have at most 600 characters", []),
    "f'(?<![\\\\w/])(?:functions?\\\\.?)?({listed})(?:json)?(?!\\\\w)'": (
        "words of the program",
        [r"(?<![\w/])(?:functions?\.?)?(search_memory|hand_over)(?:json)?(?!\w)"],
    ),
    "_SPEAKER.replace('NAME', own)": (
        "names have at most 60 characters",
        [_SPEAKER.replace("NAME", re.escape("a1 -" * 15))],
    ),
    "_filled(text)": (
        "words of the program",
        [f"(?i){each.pattern}" for each in (*NAMED.values(), *(each for _, each in SECRETS))],
    ),
    "data.get('request_forms', '')": ("words of the program", REQUEST_FORMS),
    "'|'.join((re.sub('\\\\\\\\{\\\\w+\\\\\\\\}', '.{1,300}', each) for each in sentences))": (
        "words of the program, and places for 300 characters",
        [],
    ),
    "before": ("texts have at most 400 characters", []),
    "f'(.+?){denied}\\\\s(.+?)(?:,|\\\\s{but})\\\\s\\\\S.*'": (
        "texts have at most 400 characters",
        [],
    ),
    "f'{before}(?:{folded})(?![^\\\\W_])'": ("texts have at most 400 characters", []),
    "f'{words}|{ours}'": ("kept under a name, where it is found", []),
    "translate(composed)": (
        "at most 255 bytes, on names of at most 255",
        [translate("*a*a*a*b"), translate("?" * 60 + "*"), translate("[ab]*" * 20)],
    ),
}


@pytest.fixture(autouse=True)
def deep() -> Iterator[None]:
    """The matcher calls itself for each character of some repetitions."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)
    yield
    sys.setrecursionlimit(limit)


def on_a_large_stack(call: Callable[[], Any]) -> Any:
    """Python 3.10 keeps its frames on the C stack."""
    results: list[Any] = []
    before = threading.stack_size(256 * 1024 * 1024)
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    threading.stack_size(before)
    assert results, "it ended with an exception"
    return results[0]


def steps(pattern: re.Pattern[str], text: str, method: str) -> int:
    matcher = Matcher(pattern, text, MOST)
    try:
        matcher.spans(everywhere=method not in AT_THE_BEGINNING, whole=method == "fullmatch")
    except TooManyStepsError:
        return MOST
    return matcher.steps


def slow_text(pattern: re.Pattern[str], method: str) -> str | None:
    """Return a text on which the steps grow faster than its length, if one is found."""
    half = {shape: steps(pattern, shape.text(SIZE // 2), method) for shape in shapes(pattern)}
    for shape in sorted(half, key=lambda each: -half[each])[:TRIED_AGAIN]:
        taken = steps(pattern, shape.text(SIZE), method)
        if taken == MOST:
            return shape.text(SIZE)
        twice = steps(pattern, shape.text(2 * SIZE), method)
        if twice > MOST_GROWTH * taken:
            # A repetition with an upper limit below the size grows no further.
            again = steps(pattern, shape.text(4 * SIZE), method)
            if again == MOST or again > MOST_GROWTH * twice:
                return shape.text(SIZE)
    return None


def patterns() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Each expression, where it stands, with the ways in which a text is compared with it."""
    for each in all_found():
        if each.pattern is not None:
            for method in each.ways:
                yield each.where, each.pattern, method


def made() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Each expression that is made in a function, with the methods that are called on it."""
    for each in all_found():
        if each.pattern is None:
            # The method of the shell pattern is kept, so that its name isn't seen.
            ways = ["match"] if each.source == "translate(composed)" else each.ways
            for source in MADE_WHEN_CALLED[each.source][1]:
                for method in ways:
                    yield each.where, re.compile(source), method


@pytest.mark.parametrize("expressions", [patterns, made])
def test_the_steps_grow_no_faster_than_the_text(
    expressions: Callable[[], Iterator[tuple[str, re.Pattern[str], str]]],
) -> None:
    tried = {(pattern, method): where for where, pattern, method in expressions()}
    texts = on_a_large_stack(lambda: [slow_text(*each) for each in tried])
    slow = {each: text for each, text in zip(tried.items(), texts, strict=True) if text}
    assert slow == {}
    assert len(tried) > 50


def test_all_expressions_are_seen() -> None:
    """No expression is made of a text that has no bound: text times text is quadratic, too."""
    assert {each.source for each in all_found() if each.pattern is None} == set(MADE_WHEN_CALLED)
    assert len(all_found()) > 200


@pytest.mark.parametrize("unit", [".", "ab "])
def test_an_expression_of_an_escaped_text_is_quadratic(unit: str) -> None:
    """The way in which revoked texts were searched before."""

    def taken(size: int) -> int:
        text = unit * size
        return steps(re.compile(rf"(?<!\w){re.escape(text)}(?!\w)"), text * 2 + "b", "search")

    assert on_a_large_stack(lambda: taken(160) > MOST_GROWTH * taken(80))


def test_a_whole_text_is_compared_to_its_end() -> None:
    slow = r"\s{0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*"
    assert on_a_large_stack(lambda: slow_text(re.compile(slow), "fullmatch")) is not None
    assert on_a_large_stack(lambda: slow_text(re.compile(slow), "match")) is None


@pytest.mark.parametrize(
    "bad",
    [
        # Review H1: `/forget` with 65,000 dots held a worker for 38 seconds.
        r"[\s.,;:!…]+$",
        r"(a+)+$",
        r"(?:a|aa)+$",
        r"\s*@\S+\s+",
        r"(?:(?:was|been)\s+)*changed",
        r"\w+@\w+",
        r"<!--.*?-->",
        r"(\d+)-\1x",
    ],
)
def test_a_slow_expression_is_found(bad: str) -> None:
    assert on_a_large_stack(lambda: slow_text(re.compile(bad), "search")) is not None


@pytest.mark.parametrize("good", [r"\s+", r"[a-z]+\d?", r"a{1,30}b", r"\b(?:a|b)\b", r"^\s*x"])
def test_a_linear_expression_passes(good: str) -> None:
    assert on_a_large_stack(lambda: slow_text(re.compile(good), "search")) is None


def test_the_matcher_finds_what_the_standard_library_finds() -> None:
    """Otherwise its count would say nothing."""
    for pattern in {pattern: None for _, pattern, _ in patterns()}:
        texts = list(dict.fromkeys(shape.text(12) for shape in shapes(pattern)))
        for text in texts[:: 1 + len(texts) // COMPARED]:
            given: Any = text.encode("latin-1") if isinstance(pattern.pattern, bytes) else text
            expected = [match.span() for match in pattern.finditer(given)]
            assert Matcher(pattern, text, MOST).spans() == expected, (pattern, text)
