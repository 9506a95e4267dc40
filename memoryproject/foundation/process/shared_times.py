"""When something was last done for each of many names, shared by processes, and kept without a
database and without any new space on the disk."""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
from pathlib import Path

SLOTS = 8_192
TIME = struct.Struct("<d")


class SharedTimes:
    """A file of a fixed size, made beforehand, in which a name's place holds its time. Two
    names may share a place: then one of them is done less often than it might be."""

    def __init__(self, path: Path) -> None:
        """Makes the file where it isn't there. Raises OSError where that can't be done."""
        self._path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            if file.seek(0, os.SEEK_END) < SLOTS * TIME.size:
                file.seek(0)
                # Written out, not left as a hole: later writes then need no new space.
                file.write(bytes(SLOTS * TIME.size))
                file.flush()
                os.fsync(file.fileno())

    def claim(self, name: str, *, now: float, every: float) -> bool:
        """Whether it is time again: ``every`` seconds have gone by since the last claim of
        this name by any process. Then ``now`` is noted."""
        digest = hashlib.sha256(name.encode(errors="replace")).digest()
        place = int.from_bytes(digest[:8], "big") % SLOTS * TIME.size
        with self._path.open("r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(place)
            (last,) = TIME.unpack(file.read(TIME.size))
            # A clock that was set back must not silence anybody for long.
            if 0 <= now - last < every:
                return False
            file.seek(place)
            file.write(TIME.pack(now))
            return True
