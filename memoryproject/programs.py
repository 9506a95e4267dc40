"""The programs that `make run` keeps running, and supervisor's configuration for them."""

import ctypes
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memoryproject.folders import FILES, MANAGE

GUNICORN_CONF = FILES / "deploy" / "gunicorn.conf.py"
# A program has so long to end before it is killed; it gives up after 3 by itself. The database ends
# after it.
STOP_SECONDS = 6
# Answers take seconds anyway; a webhook is to be taken in some milliseconds.
NICE = ("nice", "-n", "10")
# glibc gives threads memory from up to eight pools for each processor, each of which keeps what it
# once needed. Threads that hold the interpreter one after the other don't need so many.
ARENAS = {"MALLOC_ARENA_MAX": "2"}

# What supervisor's configuration holds at its head, and for each program.
SUPERVISOR = FILES / "deploy" / "supervisord.conf.in"
PROGRAM = FILES / "deploy" / "supervisor_program.conf.in"


@dataclass(frozen=True)
class Program:
    """One program. Its output is in ``LOG_DIR/<name>.log``."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def all_programs(port: int) -> list[Program]:
    """Return the programs that serve one installation."""
    return [
        Program(
            "web",
            (sys.executable, "-m", "gunicorn", "--config", str(GUNICORN_CONF)),
            environment={**ARENAS, "WEB_BIND": f"127.0.0.1:{port}"},
        ),
        Program("answer", (*NICE, *MANAGE, "answer"), environment=ARENAS),
        Program("qcluster", (*NICE, *MANAGE, "qcluster")),
    ]


def supervisor_conf(
    programs: Iterable[Program], *, run_dir: Path, log_dir: Path, directory: Path
) -> str:
    """Return supervisor's configuration file."""
    parts = [
        SUPERVISOR.read_text().format(
            run_dir=_escape(run_dir), as_root="user=root" if os.geteuid() == 0 else ""
        )
    ]
    names, program_conf = [], PROGRAM.read_text()
    for program in programs:
        names.append(program.name)
        environment = ",".join(
            f"{name}={_escape(shlex.quote(value))}" for name, value in program.environment.items()
        )
        parts.append(
            "\n"
            + program_conf.format(
                name=program.name,
                command=_escape(shlex.join(ending_with_parent(signal.SIGTERM, program.command))),
                environment=environment,
                directory=_escape(directory),
                # Supervisor looks for variables twice in the name of a log file.
                log_dir=_escape(_escape(log_dir)),
                stop_seconds=STOP_SECONDS,
            )
        )
    # Supervisor stops one group after the other, and all programs of a group at once.
    parts.append(f"\n[group:memory]\nprograms={','.join(names)}\n")
    return "".join(parts)


def _escape(text: Path | str) -> str:
    """Escape % for supervisor's configuration, where it marks variables.

    A # or ; after a space would begin a comment: a variable of no width stands between.
    """
    return re.sub(r"(?<=\s)(?=[#;])", "%(here).0s", str(text).replace("%", "%%"))


# Run a program that the kernel ends with the process that started it.

# From linux/prctl.h.
PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals) -> None:
    """Let this process get a signal when its parent ends. The program that it becomes does, too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))


def ending_with_parent(number: signal.Signals, command: Sequence[str]) -> list[str]:
    """Return the command that runs a program which gets a signal when its parent ends."""
    return [sys.executable, "-m", "memoryproject.programs", number.name, *command]


def main(name: str, program: str, *arguments: str) -> None:
    end_with_parent(signal.Signals[name])
    os.execvp(program, [program, *arguments])  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
