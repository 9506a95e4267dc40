"""The processes of an installation that the launcher started, each with its program's name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import psutil

from memoryproject.foundation.embedded_postgres.places import Places
from memoryproject.foundation.embedded_postgres.processes import postmaster_of
from tests.processes.installation import Installation

# The workers of each lane of memoryproject.foundation.process.lanes, in the order of their start.
LANES = {"answers": 4, "commands": 2, "schedules": 2, "background": 2}


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
    """Yield a program of supervisor's with its processes; workers are divided by lane."""
    if "memoryproject.serve" not in first.cmdline():
        yield from whole("Caddy", first)
        return
    yield "server: first process", first
    webhooks, web, leader = by_age(first.children())
    yield from whole("webhooks", webhooks)
    yield from whole("web", web)
    yield "workers: leader", leader
    workers = iter(by_age(leader.children()))
    for name, number in LANES.items():
        for worker in islice(workers, number):
            yield from whole(f"workers: lane {name}", worker)


def by_age(processes: list[psutil.Process]) -> list[psutil.Process]:
    return sorted(processes, key=lambda each: (each.create_time(), each.pid))


def whole(program: str, first: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    for process in (first, *first.children(recursive=True)):
        yield program, process
