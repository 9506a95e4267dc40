"""The time of the last run of many named jobs, shared by processes.

It needs no database and no new disk space.
"""

import fcntl
import hashlib
import os
import struct
from pathlib import Path

SLOTS = 8_192
TIME = struct.Struct("<d")


class SharedTimes:
    """A file of a fixed size, allocated beforehand, with a slot for the time of each name.

    Two names may share a slot: then one of them runs less often than it might.
    """

    def __init__(self, path: Path) -> None:
        """Create the file unless it exists. Raises OSError if that fails."""
        self._path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            if file.seek(0, os.SEEK_END) < SLOTS * TIME.size:
                file.seek(0)
                # Written out, not sparse: later writes then need no new space.
                file.write(bytes(SLOTS * TIME.size))
                file.flush()
                os.fsync(file.fileno())

    def claim(self, name: str, *, now: float, every: float) -> bool:
        """Return whether ``every`` seconds have passed since any process last claimed this name.

        If so, ``now`` is stored as the new time.
        """
        digest = hashlib.sha256(name.encode(errors="replace")).digest()
        place = int.from_bytes(digest[:8], "big") % SLOTS * TIME.size
        with self._path.open("r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(place)
            (last,) = TIME.unpack(file.read(TIME.size))
            # A clock that was set back must not block claims for long.
            if 0 <= now - last < every:
                return False
            file.seek(place)
            file.write(TIME.pack(now))
            return True
