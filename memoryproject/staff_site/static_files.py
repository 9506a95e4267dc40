"""Addresses of static files that change with the files' content, without a collectstatic step."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage

VERSION = "v"
LENGTH = 12


class VersionedStorage(StaticFilesStorage):
    """Adds ``?v=`` with the beginning of the content's SHA-256."""

    def url(self, name: str | None, force: bool = False) -> str:
        address: str = super().url(name)
        version = version_of(str(name)) if name else ""
        return f"{address}?{VERSION}={version}" if version else address


@cache
def version_of(name: str) -> str:
    """Return the mark of a file's content; "" for a file that isn't there."""
    found: Any = finders.find(name)
    return hashlib.sha256(Path(found).read_bytes()).hexdigest()[:LENGTH] if found else ""
