"""Runs inside an installation: a save of transcripts that halts at a step until it is told to
go on, or killed. Arguments: the folder, the step, and how much of it is done then."""

from __future__ import annotations

import sys
from pathlib import Path

import django

django.setup()

from sessions_app.transcript_files.transcript_folder import BatchFolder  # noqa: E402
from sessions_app.transcripts.dependencies import build_save_dependencies  # noqa: E402
from sessions_app.transcripts.save import batches_save  # noqa: E402
from sessions_app.transcripts.target import Target  # noqa: E402


def main(folder: str, step: str, at: str) -> None:
    halted = False

    def progress(now_at: str, done: int, _total: int) -> None:
        nonlocal halted
        if (now_at, done) == (step, int(at)) and not halted:
            halted = True
            _say("halted")
            sys.stdin.readline()

    dependencies = build_save_dependencies(progress=progress)
    saved = batches_save(
        folder=BatchFolder(Path(folder)), target=Target(), dependencies=dependencies
    )
    _say(saved.added)


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
