"""Locks between processes: a file lock that the kernel releases when its process dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoryproject.foundation.embedded_postgres.errors import explained


class FileLock:
    """A flock on one file. Its owner must prevent use by two threads at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire_shared(self) -> None:
        """Wait for a share of the lock. Raises EmbeddedPostgresError if the file can't be made."""
        if self._descriptor is None:
            self._descriptor = self._locked(fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Take the exclusive lock if no process holds a share; return whether it was taken."""
        try:
            self._descriptor = self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the exclusive lock during the block, after waiting for it."""
        self._descriptor = self._locked(fcntl.LOCK_EX)
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """Release the lock, even where a forked child still has a copy of the descriptor."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.abandon()

    def detach(self) -> int:
        """Return the descriptor and forget it: the lock stays as long as any process has it open.

        The lock must be held.
        """
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            raise ValueError(f"The lock {self._path} isn't held.")
        return descriptor

    def adopt(self, descriptor: int) -> None:
        """Hold the lock that ``descriptor``, from another process's ``detach``, stands for."""
        self._descriptor = descriptor

    def abandon(self) -> None:
        """Drop the lock without unlocking it: in a forked child, the lock is still the parent's."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _locked(self, operation: int) -> int:
        with explained(f"open the lock file {self._path}"):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, operation)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
