"""Record which production files run, and in which order."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from tests.docs.sources import PROJECT

PACKAGES = ("memoryproject", "sessions_app", "memories_app", "cards_app")


class Trace:
    """While it is open, collect the files whose functions run, in order of first entry.

    Module bodies and class bodies don't count: they run when a module is imported, which says
    nothing about the path.
    """

    def __init__(self) -> None:
        self.functions: dict[str, list[str]] = {}

    @property
    def files(self) -> list[str]:
        return list(self.functions)

    def __enter__(self) -> Trace:
        self._before = sys.getprofile()
        sys.setprofile(self._enter_function)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        sys.setprofile(self._before)

    def _enter_function(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_flags & inspect.CO_NEWLOCALS:
            return
        file = production_file(code.co_filename)
        if file and code.co_flags & inspect.CO_OPTIMIZED:
            functions = self.functions.setdefault(file, [])
            if code.co_name not in functions:
                functions.append(code.co_name)


def production_file(name: str) -> str | None:
    """The file's path inside the project, None for tests and libraries."""
    try:
        path = Path(name).relative_to(PROJECT)
    except ValueError:
        return None
    return path.as_posix() if path.parts[0] in PACKAGES else None
