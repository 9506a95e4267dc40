"""The progress bar of long commands."""

from __future__ import annotations

import io

from memoryproject.foundation.process.command_options import ProgressBar


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_it_draws_on_a_terminal_and_ends_its_line() -> None:
    screen = Screen()
    bar = ProgressBar(screen)
    for done in range(4):
        bar(done, 3)
    drawn = screen.getvalue().split("\r")
    assert drawn[2] == "[##########....................] 33% (1/3)"
    assert drawn[-1] == "[##############################] 100% (3/3)\n"


def test_it_is_silent_anywhere_else_and_with_nothing_to_do() -> None:
    file, screen = io.StringIO(), Screen()
    ProgressBar(file)(1, 3)
    ProgressBar(screen)(0, 0)
    assert file.getvalue() == screen.getvalue() == ""
