"""Write a backup with the time in its name into a folder, and remove old ones of the same form.

    python deploy/scheduled_backup.py DIR [--keep-days 30] [--media]

Exits with 1 if the backup failed; then nothing is removed.
"""

import argparse
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

FORM = "memory-%Y%m%dT%H%M%SZ.zip"
OURS = re.compile(r"memory-\d{8}T\d{6}Z\.zip")
MANAGE = Path(__file__).resolve().parent.parent / "manage.py"
# In a clone; else as it is installed by pip.
COMMANDS = [str(MANAGE)] if MANAGE.is_file() else ["-m", "memoryproject"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the backups are")
    parser.add_argument("--keep-days", type=int, default=30, help="remove those that are older")
    parser.add_argument("--media", action="store_true", help="also the files of messages")
    options = parser.parse_args()
    if not options.folder.is_dir():
        print(f"There is no folder {options.folder}: create it first.", file=sys.stderr)
        return 1
    now = datetime.now(timezone.utc)
    path = options.folder / now.strftime(FORM)
    made = subprocess.run(backup_command(path, media=options.media), check=False)
    if made.returncode:
        return 1
    for old in expired(options.folder, now=now, kept=timedelta(days=options.keep_days)):
        old.unlink()
        print(f"{old.name} was removed.")
    return 0


def backup_command(path: Path, *, media: bool) -> list[str]:
    """Return the command that writes one backup, with the files of messages or without them."""
    words = [sys.executable, *COMMANDS, "backup", str(path)]
    return [*words, "--media"] if media else words


def expired(folder: Path, *, now: datetime, kept: timedelta) -> list[Path]:
    """Return the backups that were made longer ago, by their names; never other files."""
    return sorted(
        path
        for path in folder.iterdir()
        if OURS.fullmatch(path.name)
        and now - datetime.strptime(path.name, FORM).replace(tzinfo=timezone.utc) > kept
    )


if __name__ == "__main__":
    sys.exit(main())
