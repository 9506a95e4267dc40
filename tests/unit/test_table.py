"""What tests/tables.py says of a row that fails."""

from __future__ import annotations

import pytest

from tests.tables import table


def test_every_row_that_fails_is_named_with_how() -> None:
    @table(("number", "half"), [(2, 1), (3, 1), ("x", 1)])
    def check(number: int, half: int) -> None:
        assert number / 2 == half

    with pytest.raises(AssertionError, match=r"\(3, 1\): AssertionError") as failed:
        check()
    assert "('x', 1): TypeError" in str(failed.value)
    assert "(2, 1)" not in str(failed.value)


def test_what_should_have_been_raised_is_told() -> None:
    @table("text", ["1", "x"])
    def check(text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(AssertionError, match="'1',\\): Failed"):
        check()
