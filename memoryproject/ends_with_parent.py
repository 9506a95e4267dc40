"""Run a program that the kernel ends with the process that started it.

`python -m memoryproject.ends_with_parent SIGNAL PROGRAM ARGUMENT …` becomes PROGRAM, which gets
SIGNAL when its parent ends, however that ends. Only Linux can do this; elsewhere such a program is
left behind if its parent is killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

# From linux/prctl.h.
PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals) -> None:
    """Let this process get a signal when its parent ends. The program that it becomes does, too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))


def ending_with_parent(number: signal.Signals, command: Sequence[str]) -> list[str]:
    """Return the command that runs a program which gets a signal when its parent ends."""
    return [sys.executable, "-m", "memoryproject.ends_with_parent", number.name, *command]


def main(name: str, program: str, *arguments: str) -> None:
    end_with_parent(signal.Signals[name])
    os.execv(program, [program, *arguments])  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
