"""A progress bar on a terminal; nothing anywhere else."""

from __future__ import annotations

from typing import Protocol

WIDTH = 30


class Terminal(Protocol):
    """What a command writes to: Django's OutputWrapper, or a text stream."""

    def isatty(self) -> bool: ...

    def write(self, text: str, /) -> object: ...

    def flush(self) -> None: ...


class ProgressBar:
    """Call it with how much is done and of how much; it draws where that shows a change."""

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
