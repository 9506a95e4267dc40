"""A restore drill: restore a backup into a scratch folder and check what is there.

The scratch database is the embedded PostgreSQL, in a folder of its own, whatever database the
server uses. It is removed at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
SHOWN_OF_OUTPUT = 2_000


class DrillError(Exception):
    """A step failed. The text names the step and says what the command printed."""


@dataclass(frozen=True)
class Drill:
    """The result of a drill. ``rows`` of ``tables`` were restored from ``archive``."""

    archive: str
    rows: int
    tables: int
    audit: str

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def restore_drill(
    *,
    archive: Path | None,
    keys: Mapping[str, str],
    access_options: Sequence[str] = (),
    restore_options: Sequence[str] = (),
    scratch: Path | None = None,
    report: Callable[[str], None],
) -> Drill:
    """Restore ``archive``, or a backup that is made now, into a scratch folder, and check it.

    ``keys``: settings that the scratch installation needs besides the archive. ``access_options``:
    what the commands that read the archive need for it. ``scratch``: the
    folder in which the scratch folder is made; it needs as much space as the database. ``report``
    is called with the name of each step. Raises DrillError.
    """
    with tempfile.TemporaryDirectory(prefix="restore-drill-", dir=scratch) as name:
        folder = Path(name)
        if archive is None:
            report("Make a backup")
            archive = folder / "drill.zip"
            _manage_here("Make a backup", ["backup", str(archive)])
        # The commands run in another folder.
        source = str(archive.resolve())
        report("Verify the archive")
        written = json.loads(
            _manage_here("Verify", ["backup", "--verify", "--json", *access_options, source])
        )
        scratch_environment = _environment(folder, keys)
        report("Restore it into a scratch folder")
        words = ["restore", "--json", *access_options, *restore_options, source]
        restored = json.loads(_manage("Restore", words, scratch_environment))
        if restored["rows"] != written["rows"] or restored["tables"] != written["tables"]:
            raise DrillError(
                f"{restored['rows']} rows of {restored['tables']} tables were restored, but the "
                f"archive has {written['rows']} rows of {written['tables']} tables."
            )
        report("Check the tables and the audit chain")
        _manage("Check the tables", ["migrate", "--check"], scratch_environment)
        audit = _manage("Check the audit chain", ["audit_verify"], scratch_environment)
        return Drill(str(archive), restored["rows"], restored["tables"], _last_line(audit))


def _environment(folder: Path, keys: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an installation in ``folder`` with a database of its own."""
    return {
        **os.environ,
        **keys,
        "DATA_DIR": str(folder / "data"),
        "LOG_DIR": str(folder / "logs"),
        # An empty value counts as unset, and wins over .env.
        "DATABASE_URL": "",
        "MEDIA_STORAGE": "",
        "MEMORY_CONFIG": "",
    }


def _manage_here(step: str, words: Sequence[str]) -> str:
    """Run a command of manage.py and return what it printed. Raises DrillError."""
    printed = StringIO()
    try:
        call_command(*words, stdout=printed, stderr=StringIO())
    except CommandError as error:
        raise DrillError(f"{step} failed: {error}") from error
    return printed.getvalue()


def _manage(step: str, words: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a command of manage.py in another installation, likewise."""
    done = subprocess.run(  # noqa: S603 our own program
        [sys.executable, str(MANAGE), *words],
        env=dict(environment),
        cwd=MANAGE.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip())[-SHOWN_OF_OUTPUT:]
        raise DrillError(f"{step} failed: {output}")
    return done.stdout


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "")
