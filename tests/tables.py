"""Tests of a whole table: one rule, held by each of many rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def table(
    names: str | tuple[str, ...], rows: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a function that needs no fixture: it names all rows that fail.

    Takes the names and rows that ``pytest.mark.parametrize`` takes, as plain values. A test of its
    own for each row would cost more than most of the rules do.
    """
    of_one = isinstance(names, str)
    cases = [(row,) if of_one else tuple(row) for row in rows]

    def of(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            wrong = [f"{case!r}: {error}" for case in cases if (error := failure(check, case))]
            assert not wrong, "\n".join(wrong)

        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        test.__doc__, test.__module__ = check.__doc__, check.__module__
        return test

    assert cases, "a table without rows"
    return of


def failure(check: Callable[..., None], case: tuple[Any, ...]) -> str:
    """Return how the check fails for this row; empty where it holds."""
    try:
        check(*case)
    except (Exception, pytest.fail.Exception) as error:
        return f"{type(error).__name__} {error}"
    return ""
