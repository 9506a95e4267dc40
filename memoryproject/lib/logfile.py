"""A log file that only its owner can read (NFR-SEC-002)."""

from __future__ import annotations

import logging.handlers
import os
from io import TextIOWrapper
from pathlib import Path


class PrivateFileHandler(logging.handlers.WatchedFileHandler):
    """Appends to a file of mode 600 in a folder of mode 700, and follows log rotation."""

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding)
