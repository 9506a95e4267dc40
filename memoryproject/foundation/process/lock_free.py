"""The parts that the processes of a django-q2 cluster share, without a lock in them.

The stock parts hold a lock in shared memory while a process reads a queue, returns a result, or
looks at an event. A process that is killed at that moment never releases it, and what waits for the
lock waits forever: the other workers, the pusher, or the sentinel that would replace them.

Here the kernel keeps what is shared. Whatever a killed process was at, the others go on. A message
that it had taken is lost with it; its job is given out again when it is overdue.
"""

from __future__ import annotations

import errno
import os
import pickle
import select
import socket
import sys
import tempfile
import time
from contextlib import nullcontext
from functools import lru_cache
from multiprocessing.sharedctypes import RawValue
from typing import Any

from django_q import cluster

# Each send is one message, each read takes one message whole.
SOCKET_KIND = socket.SOCK_DGRAM if sys.platform == "darwin" else socket.SOCK_SEQPACKET
BUFFER_BYTES = 256 * 1024
# Larger messages go as an open file.
MAX_DIRECT_BYTES = 16 * 1024
AS_FILE = b"file"
# What the sentinel puts into the queue once for each worker.
STOP = "STOP"
# How often who waits looks whether its parent process still lives.
LOOK_SECONDS = 1.0
# The pause of who waits for a message to be taken, which happens only while all workers are busy.
TAKEN_PAUSE = 0.005


@lru_cache(maxsize=4)
def _parent_at_first(pid: int) -> int:
    return os.getppid()


def _end_with_parent() -> None:
    """Without the sentinel its processes would take jobs from the broker and never finish them."""
    if os.getppid() != _parent_at_first(os.getpid()):
        raise SystemExit("The cluster is gone.")


class _Ends:
    """Two ends of a connection, which the processes that are forked later have, too."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair(socket.AF_UNIX, SOCKET_KIND)

    def __del__(self) -> None:
        self._reader.close()
        self._writer.close()

    def _is_readable(self, timeout: float | None) -> bool:
        """Wait for something to read, at most ``timeout`` seconds; return whether it is there."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1000))


class LockFreeQueue(_Ends):
    """A queue between processes that are forked after it was made.

    ``maxsize``: where it isn't 0, one message at most waits to be taken. The processes that use the
    queue end with their parent process.
    """

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__()
        self._is_limited = maxsize > 0
        for end in (self._reader, self._writer):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            end.settimeout(LOOK_SECONDS)

    def put(self, message: Any) -> None:
        """Send a message; wait while there is no room for it. An order to stop never waits."""
        _parent_at_first(os.getpid())
        packed = pickle.dumps(message)
        while self._is_limited and message != STOP and not self.empty():
            _end_with_parent()
            time.sleep(TAKEN_PAUSE)
        if len(packed) <= MAX_DIRECT_BYTES:
            self._send(packed, [])
            return
        with tempfile.TemporaryFile() as file:
            file.write(packed)
            file.seek(0)
            self._send(AS_FILE, [file.fileno()])

    def get(self) -> Any:
        """Wait for a message and take it."""
        _parent_at_first(os.getpid())
        while True:
            try:
                packed, files, _, _ = socket.recv_fds(self._reader, MAX_DIRECT_BYTES, 1)
            except TimeoutError:
                _end_with_parent()
                continue
            if files:
                with open(files[0], "rb") as file:
                    packed = file.read()
            return pickle.loads(packed)  # noqa: S301 from a process of this cluster

    def empty(self) -> bool:
        return not self._is_readable(0)

    def qsize(self) -> int:
        """Return 1 where messages wait: their number is known to nobody."""
        return int(not self.empty())

    def close(self) -> None:
        """Do nothing: others may still read. The kernel frees the queue with its last process."""

    def join_thread(self) -> None:
        """Do nothing: what was put is with the kernel."""

    def _send(self, packed: bytes, files: list[int]) -> None:
        while True:
            try:
                if files:
                    socket.send_fds(self._writer, [packed], files)
                else:
                    self._writer.send(packed)
            except TimeoutError:
                _end_with_parent()
            except OSError as error:
                # What macOS says where others wait for room.
                if error.errno != errno.ENOBUFS:
                    raise
                _end_with_parent()
                time.sleep(TAKEN_PAUSE)
            else:
                return


class LockFreeEvent(_Ends):
    """An event that processes wait for, and that is never cleared."""

    def set(self) -> None:
        if not self.is_set():
            self._writer.send(b"set")

    def is_set(self) -> bool:
        return self._is_readable(0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the event, at most ``timeout`` seconds; return whether it is set."""
        return self._is_readable(timeout)


class LockFreeTimer:
    """How long a worker may still take for its job.

    The sentinel makes it and reads it, the worker sets it. ``value``: seconds left, or 0 where they
    are over, or one of django-q2's states: -1 idle or without a limit, -2 to be recycled.
    """

    def __init__(self, typecode: str, value: float) -> None:
        self._sentinel = os.getpid()
        # A state, or a time of the machine's monotonic clock. It is written in one step.
        self._kept = RawValue("d", value)

    def get_lock(self) -> nullcontext[None]:
        return nullcontext()

    @property
    def value(self) -> float:
        kept = float(self._kept.value)
        return max(kept - time.monotonic(), 0.0) if kept > 0 else kept

    @value.setter
    def value(self, seconds: float) -> None:
        # The sentinel takes off each second that passed, and would undo what the worker sets.
        if os.getpid() != self._sentinel:
            self._kept.value = time.monotonic() + seconds if seconds > 0 else seconds


def use_lock_free_parts() -> None:
    """Make clusters of this process and of its child processes use the parts above.

    django-q2 has no setting for it.
    """
    cluster.Queue = LockFreeQueue
    cluster.Event = LockFreeEvent
    cluster.Value = LockFreeTimer
