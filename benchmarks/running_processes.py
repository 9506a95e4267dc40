"""The processes of an installation that the launcher started, each with its program's name."""

from __future__ import annotations

from collections.abc import Iterator

import psutil

from memoryproject.foundation.embedded_postgres.places import Places, postmaster_of
from tests.processes.installation import Installation


def members(installation: Installation) -> Iterator[tuple[str, psutil.Process]]:
    """Yield all processes, each with the name of its program."""
    launcher = installation.programs["launcher"]
    yield "launcher", launcher
    for supervisor in launcher.children():
        yield "supervisor", supervisor
        for program in supervisor.children():
            yield from of_program(program)
    postmaster = postmaster_of(Places(installation.data_dir))
    assert postmaster is not None
    yield from whole("PostgreSQL", postmaster)


def of_program(first: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """Yield a program of supervisor's with its processes."""
    words = " ".join(first.cmdline())
    name = next((name for name in ("answer", "qcluster") if name in words), "web")
    yield from whole(name, first)


def whole(program: str, first: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    for process in (first, *first.children(recursive=True)):
        yield program, process
