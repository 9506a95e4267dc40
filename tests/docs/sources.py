"""Reads the documents and what they speak of."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(PROJECT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted(PROJECT.glob("docs/*.md")),
]
OUR_APPS = (
    "memoryproject",
    "memoryproject.foundation.audit",
    "memoryproject.staff_site",
    "sessions_app",
    "memories_app",
    "cards_app",
)
# An assignment at the beginning of a line, perhaps commented out.
EXAMPLE = re.compile(r"^#?\s?([A-Z][A-Z0-9_]+)=(.*)$", re.MULTILINE)
# A row of a table whose first cell is a setting: its name and its default.
ROW = re.compile(r"^\| `([A-Z][A-Z0-9_]+)` \| (?:`([^`]*)`)?\s*\| (.+) \|$", re.MULTILINE)


def read(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


def settings_read() -> set[str]:
    """The names that settings.py takes from the environment."""
    text = read("memoryproject/settings.py")
    return set(re.findall(r'(?:env\.\w+|_folder)\(\s*"([A-Z][A-Z0-9_]+)"', text))


def example_defaults() -> dict[str, str]:
    """What .env.example says, by name."""
    return {name: value.strip() for name, value in EXAMPLE.findall(read(".env.example"))}


def documented_defaults() -> dict[str, str]:
    """What the tables of docs/configuration.md say, by name."""
    rows = ROW.findall(read("docs/configuration.md"))
    return {name: default for name, default, _ in rows}


def tracked_files() -> list[Path]:
    """The files of the project, as git knows them; empty outside a clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        check=False,
    )
    names = listed.stdout.decode().split("\0") if listed.returncode == 0 else []
    return [PROJECT / name for name in names if name and (PROJECT / name).is_file()]
