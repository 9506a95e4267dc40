"""Types and checks that the options of several commands share."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from django.core.management import CommandError
from django.core.management.base import OutputWrapper


def folder_given(text: str) -> Path:
    """Return the folder that an option names. Raises ArgumentTypeError."""
    # An unset shell variable must not mean the current folder.
    if not text.strip() or "\x00" in text:
        raise argparse.ArgumentTypeError("a folder is needed")
    return Path(text).expanduser()


def refuse_missing_values(options: Mapping[str, Any]) -> None:
    """Raise CommandError for ``--option=--``, which argparse takes for an empty list."""
    for name, value in options.items():
        if value == []:
            option = name.replace("_", "-")
            raise CommandError(f"--{option}: a value is needed, not --.", returncode=2)


# A progress bar on a terminal; no output anywhere else.

WIDTH = 30


class ProgressBar:
    """A progress bar. Call it with the done and the total number; it draws visible changes only."""

    def __init__(self, stream: OutputWrapper | TextIO) -> None:
        self._stream = stream if stream.isatty() else None
        self._drawn = ""

    def __call__(self, done: int, total: int) -> None:
        if self._stream is None or total == 0:
            return
        filled = WIDTH * done // total
        line = f"[{'#' * filled}{'.' * (WIDTH - filled)}] {100 * done // total}% ({done}/{total})"
        if line != self._drawn:
            self._drawn = line
            self._stream.write(f"\r{line}" + ("\n" if done >= total else ""))
            self._stream.flush()
