"""What the launcher and supervisor print: lost on a full disk, as JSON where LOG_FORMAT says so.

    python -m memoryproject.output PROGRAM MODULE ARGUMENT …

runs a module whose output is such. The programs below them print into pipes, which are never full.
"""

import io
import json
import os
import runpy
import sys
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any


class LossyFile(io.FileIO):
    """A file to which nothing is written while its disk is full, or its reader is gone."""

    def write(self, data: Any) -> int:
        """Write what can be written; all of it counts as written."""
        with suppress(OSError):
            super().write(data)
        return len(data)


class Output(io.TextIOWrapper):
    """The text output of a program, each line a JSON object where LOG_FORMAT is json."""

    def __init__(self, descriptor: int, *, program: str, level: str) -> None:
        # Without a buffer, as Python itself does with -u: what was lost isn't tried again.
        file: Any = LossyFile(descriptor, "w", closefd=False)
        super().__init__(file, encoding="utf-8", errors="backslashreplace", write_through=True)
        self._entry = {"level": level, "program": program}
        self._begun = ""

    def write(self, text: str) -> int:
        """Write a text, of which JSON has whole lines only."""
        if os.environ.get("LOG_FORMAT") != "json":
            return super().write(text)
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(None, map(str.strip, lines)):
            is_json = line.startswith("{")
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S%z")
            entry = {"time": now, **self._entry, "message": line}
            super().write(f"{line if is_json else json.dumps(entry, ensure_ascii=False)}\n")
        return len(text)


def use_lossy_output(program: str, *, level: str = "INFO") -> None:
    """Replace standard output, whose lines have this level, and standard error, where open."""
    if sys.stdout is not None:
        sys.stdout = Output(1, program=program, level=level)
    if sys.stderr is not None:
        sys.stderr = Output(2, program=program, level="ERROR")


if __name__ == "__main__":
    name, module = sys.argv[1:3]
    # Supervisor prints nothing less than errors.
    use_lossy_output(name, level="ERROR")
    del sys.argv[1:3]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
