"""Types and checks that the options of several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management import CommandError

# A command does what it is told all the same, so that memory can be filled before it is used.
MEMORY_OFF = "The memory system is disabled: set ENABLE_MEMORY_SYSTEM=true."


def folder_given(text: str) -> Path:
    """Return the folder that an option names. Raises ArgumentTypeError."""
    # An unset shell variable must not mean the current folder.
    if not text.strip() or "\x00" in text:
        raise argparse.ArgumentTypeError("a folder is needed")
    return Path(text).expanduser()


def refuse_missing_values(options: Mapping[str, Any]) -> None:
    """Raise CommandError for ``--option=--``, which argparse takes for an empty list."""
    for name, value in options.items():
        if value == []:
            option = name.replace("_", "-")
            raise CommandError(f"--{option}: a value is needed, not --.", returncode=2)
