"""Measures saving and exporting transcripts: run from the project's root.

    python benchmarks/measure_transcripts.py [--files 100 1000 10000] [--messages 10000]

For each number of batch files, ten messages in each: the seconds of each step of a save into
an empty chat, and how much memory the process held at most beyond what it held before. Then
one session of so many messages: written as batches, and saved again. Each measurement is a
process of its own, over a database of its own in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))
MESSAGES_A_FILE = 10
# Of about the length of a WhatsApp message.
TEXT = "message {number}: the delivery from TestCorp comes on Thursday, between nine and eleven."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--messages", type=int, default=10_000, help="of the one session")
    parser.add_argument("--inside", nargs=2, help="what a measuring process does")
    arguments = parser.parse_args()
    if arguments.inside:
        inside(arguments.inside[0], Path(arguments.inside[1]))
        return
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    folder = Path(tempfile.mkdtemp(prefix="transcripts-benchmark-"))
    try:
        measure(folder, arguments.files, arguments.messages)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(folder: Path, files: list[int], messages: int) -> None:
    os.environ |= {
        "DATA_DIR": str(folder / "data"),
        "LOG_DIR": str(folder / "logs"),
        "DATABASE_URL": "",
        "DJANGO_SETTINGS_MODULE": "memoryproject.settings",
    }
    import django  # noqa: PLC0415 the settings read the environment

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connection, connections  # noqa: PLC0415

    from memoryproject.foundation.embedded_postgres import EmbeddedPostgres  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    try:
        for count in files:
            with connection.cursor() as cursor:
                cursor.execute("TRUNCATE sessions_app_chat CASCADE")
            place = folder / "temp"
            write(place, count, MESSAGES_A_FILE)
            tell(f"save {count} files of {MESSAGES_A_FILE} messages", "save", place)
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE sessions_app_chat CASCADE")
        write(place, 1, messages)
        tell(f"save one file of {messages} messages", "save", place)
        tell(f"export a session of {messages} messages", "export", place)
        tell("save it again, all of it stored", "save", place)
    finally:
        connections.close_all()
        EmbeddedPostgres(folder / "data").release()


def write(place: Path, files: int, messages: int) -> None:
    from sessions_app.transcript_files.parse_transcript import message_text  # noqa: PLC0415
    from sessions_app.transcript_files.transcript_folder import batch_name  # noqa: PLC0415

    place.mkdir(exist_ok=True)
    for number in range(files):
        said = [
            message_text(
                role=("user", "assistant")[each % 2],
                content=TEXT.format(number=number * messages + each),
            )
            for each in range(messages)
        ]
        (place / batch_name(number + 1)).write_text("".join(said), encoding="utf-8")


def tell(what: str, action: str, place: Path) -> None:
    arguments = [sys.executable, __file__, "--inside", action, str(place)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=PROJECT)
    found: dict[str, Any] = json.loads(done.stdout)
    steps = ", ".join(f"{step.lower()} {seconds:.1f}" for step, seconds in found["steps"].items())
    print(f"{what}: {found['seconds']:.1f} s ({steps}), {found['megabytes']:.0f} MB")


def inside(action: str, place: Path) -> None:
    """One measurement; prints it as JSON."""
    import django  # noqa: PLC0415 the settings read the environment

    from sessions_app.history.dependencies import build_transcript_backups  # noqa: PLC0415 imports models

    django.setup()
    from django.conf import settings  # noqa: PLC0415

    from sessions_app.inbound.take_message import IntakeRules  # noqa: PLC0415
    from sessions_app.transcript_files.transcript_folder import BatchFolder  # noqa: PLC0415
    from sessions_app.transcripts.export_transcripts import Target, transcripts_export  # noqa: PLC0415
    from sessions_app.transcripts.save import SaveDependencies, batches_save  # noqa: PLC0415

    assert settings.DATA_DIR
    steps: dict[str, float] = {}
    last = [time.perf_counter()]

    def progress(step: str, done: int, total: int) -> None:
        if done == total:
            now = time.perf_counter()
            steps[step] = now - last[0]
            last[0] = now

    backups, keep = build_transcript_backups(), timedelta(days=30)
    dependencies = SaveDependencies(IntakeRules(), backups, keep, progress)
    found = Target().find()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = last[0] = time.perf_counter()
    if action == "save":
        batches_save(folder=BatchFolder(place), target=Target(), dependencies=dependencies)
    else:
        assert found is not None
        transcripts_export(conversation=found, path=place, progress=progress)
    seconds = time.perf_counter() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "steps": steps, "megabytes": (most - held) / 1024}))


if __name__ == "__main__":
    main()
