"""A progress bar on a terminal; no output anywhere else."""

from __future__ import annotations

from typing import Protocol

WIDTH = 30


class Terminal(Protocol):
    """The output of a command: Django's OutputWrapper, or a text stream."""

    def isatty(self) -> bool: ...

    def write(self, text: str, /) -> object: ...

    def flush(self) -> None: ...


class ProgressBar:
    """A progress bar. Call it with the done and the total number; it draws visible changes only."""

    def __init__(self, stream: Terminal) -> None:
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
