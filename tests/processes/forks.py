"""Processes that do something at one moment: forked, because imports cost seconds each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db import connections

Given = TypeVar("Given")
Result = TypeVar("Result")

FORK = multiprocessing.get_context("fork")
START_SECONDS = 60


def run_at_once(function: Callable[[Given], Result], arguments: Sequence[Given]) -> list[Result]:
    """Call the function in a process for each argument, all let go together.

    Raises AssertionError when a process fails; its traceback is on stderr.
    """
    start = FORK.Barrier(len(arguments))

    def run(results: Any, argument: Given) -> None:
        start.wait(START_SECONDS)
        results.send(function(argument))

    pipes = [FORK.Pipe(duplex=False) for _ in arguments]
    processes = [
        FORK.Process(target=run, args=(send, argument))
        for (_, send), argument in zip(pipes, arguments, strict=True)
    ]
    # A connection that is open would be shared.
    connections.close_all()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)
    return [receive.recv() for receive, _ in pipes]
