"""Saves of transcripts inside an installation, each halted at a step until it is told to go on,
or killed.

Run as ``python -m tests.processes.saver``; reads a line of JSON for each save: the folder, the
step, and how much of it is done then. Saves in a fork, which says "halted" and its process id,
waits for SIGUSR1, and says "added" and how many messages. At last "ended" and its exit code.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import django

django.setup()

from sessions_app.transcript_files.transcript_folder import BatchFolder  # noqa: E402
from sessions_app.transcripts.export_transcripts import Target  # noqa: E402
from sessions_app.transcripts.save import batches_save, build_save_dependencies  # noqa: E402
from tests.processes.forks import FORK  # noqa: E402


def main() -> None:
    # Nobody misses the signal that comes before it is waited for.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    for line in sys.stdin:
        process = FORK.Process(target=save, args=json.loads(line))
        process.start()
        process.join()
        _say(f"ended {process.exitcode}")


def save(folder: str, step: str, at: int) -> None:
    halted = False

    def progress(now_at: str, done: int, _total: int) -> None:
        nonlocal halted
        if (now_at, done) == (step, at) and not halted:
            halted = True
            _say(f"halted {os.getpid()}")
            signal.sigwait([signal.SIGUSR1])

    dependencies = build_save_dependencies(progress=progress)
    saved = batches_save(
        folder=BatchFolder(Path(folder)), target=Target(), dependencies=dependencies
    )
    _say(f"added {saved.added}")


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
