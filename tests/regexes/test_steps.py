"""No regular expression of the project takes more than linear time, whatever a stranger writes.

Nothing is measured with a clock: `Matcher` counts the steps on texts that are made from the syntax
tree of each expression.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.regexes.adversarial import shapes
from tests.regexes.found import Found, all_found
from tests.regexes.steps import Matcher, TooManyStepsError

pytestmark = pytest.mark.slow

SIZE = 80
MOST = 400_000
# The shapes that take most steps are tried again with a text of twice the size. Twice the text may
# take little more than twice the steps; quadratic is four times.
TRIED_AGAIN = 6
MOST_GROWTH = 3

BOUNDED = {
    "memoryproject.foundation.text.tokenizer:_SENTENCE_END": "reads the 8 characters before a word",
}
MADE_WHEN_CALLED = {
    "f\"({'|'.join(map(re.escape, schemes))})://\\\\S+\"": "fixed words, then one repetition",
    "f'@\\\\+?{re.escape(number)}(?![0-9])'": "one literal",
    "f'(?<!\\\\w){re.escape(text)}(?!\\\\w)'": "one literal",
    "f'(?<!\\\\w){wanted}(?!\\\\w)'": "the words of a quote, with white space between them",
    "re.escape(left_out['passage'])": "one literal",
    "re.escape(text)": "one literal",
    "re.escape(name) + '(?:\\\\.(\\\\d{1,9}))?'": "one literal and nine digits",
    "pattern": "kept in a table, where it is found",
    "f'{words}|{ours}'": "kept under a name, where it is found",
    "translate(composed)": "a shell pattern of at most 255 bytes, on names of at most 255",
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


def steps(pattern: re.Pattern[str], text: str, *, everywhere: bool) -> int:
    matcher = Matcher(pattern, text, MOST)
    try:
        matcher.spans(everywhere=everywhere)
    except TooManyStepsError:
        return MOST
    return matcher.steps


def slow_text(pattern: re.Pattern[str], *, everywhere: bool) -> str | None:
    """Return a text on which the steps grow faster than its length, if one is found."""
    taken = {
        shape: steps(pattern, shape.text(SIZE), everywhere=everywhere) for shape in shapes(pattern)
    }
    for shape in sorted(taken, key=lambda each: -taken[each])[:TRIED_AGAIN]:
        twice = steps(pattern, shape.text(2 * SIZE), everywhere=everywhere)
        if taken[shape] == MOST:
            return shape.text(SIZE)
        if twice > MOST_GROWTH * taken[shape]:
            # A repetition with an upper limit below the size grows no further.
            again = steps(pattern, shape.text(4 * SIZE), everywhere=everywhere)
            if again == MOST or again > MOST_GROWTH * twice:
                return shape.text(SIZE)
    return None


def patterns() -> list[Any]:
    return [pytest.param(each, id=each.where) for each in all_found() if each.pattern is not None]


def compiled(found: Found) -> re.Pattern[str]:
    assert found.pattern is not None
    return found.pattern


@pytest.mark.parametrize("found", patterns())
def test_the_steps_grow_no_faster_than_the_text(found: Found) -> None:
    if found.where in BOUNDED:
        pytest.skip(BOUNDED[found.where])
    slow = on_a_large_stack(lambda: slow_text(compiled(found), everywhere=found.everywhere))
    assert slow is None, f"{found.where} ({sorted(found.methods)}): {slow!r}"


def test_all_expressions_are_seen() -> None:
    """Those that are made in a function are named here, with the reason why they are harmless."""
    assert {each.source for each in all_found() if each.pattern is None} == set(MADE_WHEN_CALLED)
    assert set(BOUNDED) <= {each.where for each in all_found()}
    assert len(all_found()) > 200


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
    assert on_a_large_stack(lambda: slow_text(re.compile(bad), everywhere=True)) is not None


@pytest.mark.parametrize("good", [r"\s+", r"[a-z]+\d?", r"a{1,30}b", r"\b(?:a|b)\b", r"^\s*x"])
def test_a_linear_expression_passes(good: str) -> None:
    assert on_a_large_stack(lambda: slow_text(re.compile(good), everywhere=True)) is None


@pytest.mark.parametrize("found", patterns())
def test_the_matcher_finds_what_the_standard_library_finds(found: Found) -> None:
    """Otherwise its count would say nothing."""
    pattern = compiled(found)
    for text in dict.fromkeys(shape.text(12) for shape in shapes(pattern)):
        given: Any = text.encode("latin-1") if isinstance(pattern.pattern, bytes) else text
        expected = [match.span() for match in pattern.finditer(given)]
        assert Matcher(pattern, text, MOST).spans() == expected, text
