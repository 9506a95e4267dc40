"""The embedded PostgreSQL of one DATA_DIR, as one of our processes uses it.

The first process that needs the server starts it, and the last one that releases it stops it. Two
file locks track this: the start lock lets one process at a time start or stop the server, and every
process shares the users lock while it uses the server. The kernel releases both when a process
dies, for any reason.
"""

from __future__ import annotations

import logging
import os
import threading
from multiprocessing.util import Finalize
from pathlib import Path
from weakref import WeakSet

from memoryproject.foundation.embedded_postgres.cluster import ROLE
from memoryproject.foundation.embedded_postgres.errors import EmbeddedPostgresError, explained
from memoryproject.foundation.embedded_postgres.file_lock import FileLock
from memoryproject.foundation.embedded_postgres.folders import prepare_folders
from memoryproject.foundation.embedded_postgres.launch_postgres import answers, start_server
from memoryproject.foundation.embedded_postgres.places import PORT, places_for
from memoryproject.foundation.embedded_postgres.processes import postmaster_of, stop_postmaster
from memoryproject.foundation.embedded_postgres.provision import DATABASE, provision
from memoryproject.foundation.embedded_postgres.serverlog import trim_log
from memoryproject.foundation.embedded_postgres.system_accounts import server_account

logger = logging.getLogger(__name__)

# After multiprocessing's own exit handlers, so that children that use the server have ended.
_EXIT_PRIORITY = -1000


class EmbeddedPostgres:
    """The server of one DATA_DIR. Creating an instance has no effect; thread- and fork-safe."""

    user = ROLE
    database = DATABASE
    port = PORT

    def __init__(self, data_dir: Path) -> None:
        self.places = places_for(Path(data_dir))
        self._guard = threading.RLock()
        self._start_lock = FileLock(self.places.start_lock)
        self._users_lock = FileLock(self.places.users_lock)
        self._provisioned = False
        self._exit_hook: Finalize | None = None
        _instances.add(self)

    @property
    def host(self) -> str:
        """The folder of the server's socket, which is known before the server starts."""
        return str(self.places.socket_dir)

    @property
    def password(self) -> str:
        """The role's password; empty before the first start."""
        with explained(f"read {self.places.password}"):
            if not self.places.password.exists():
                return ""
            return self.places.password.read_text().strip()

    @property
    def is_held(self) -> bool:
        """Return whether this process counts as a user of the server."""
        return self._users_lock.held

    def connection_settings(self) -> dict[str, str | int]:
        """Return NAME, USER, HOST and PORT of a Django database. Starts nothing, writes nothing.

        PASSWORD is empty: the server's first start creates it, and the Django backend reads it
        then.
        """
        return {
            "NAME": self.database,
            "USER": self.user,
            "PASSWORD": "",
            "HOST": self.host,
            "PORT": self.port,
        }

    def is_running(self) -> bool:
        """Return whether the server accepts connections."""
        return os.path.exists(self.places.cluster) and answers(self.places)

    def ensure_running(self) -> None:
        """Start the server if it isn't running, and count this process as one of its users.

        Raises EmbeddedPostgresError when it can't be started.
        """
        with self._guard:
            if self.is_held and self._provisioned and self.is_running():
                return
            account = server_account()
            prepare_folders(self.places, account)
            self._take_share()
            with self._start_lock.exclusive():
                trim_log(self.places.log)
                if not self.is_running():
                    start_server(self.places, account)
                provision(self.places, self.password)
            self._provisioned = True

    def release(self) -> None:
        """Release the server; if this process was its last user, stop it and wait for its end.

        Raises EmbeddedPostgresError when it doesn't stop.
        """
        with self._guard:
            if not self.is_held:
                return
            if not self.places.data_dir.exists():
                # DATA_DIR was deleted while the server ran. The server notices that and stops by
                # itself.
                self._users_lock.release()
                return
            with self._start_lock.exclusive():
                self._users_lock.release()
                if self._users_lock.try_exclusive():
                    try:
                        self._stop()
                    finally:
                        self._users_lock.release()

    def share(self) -> int:
        """Return a descriptor that counts as a user for as long as any process has it open.

        Call while this process is a user. The descriptor can be passed to a process that has
        nothing else of this package.
        """
        share = FileLock(self.places.users_lock)
        share.acquire_shared()
        return share.detach()

    def adopt(self, share: int) -> None:
        """Make this process the user that a descriptor from ``share`` stands for."""
        with self._guard:
            self._users_lock.adopt(share)

    def _take_share(self) -> None:
        if not self.is_held:
            self._users_lock.acquire_shared()
        if self._exit_hook is None:
            # Unlike atexit, this also runs at the end of a multiprocessing child, and only in the
            # process that registered it.
            self._exit_hook = Finalize(None, self._release_at_exit, exitpriority=_EXIT_PRIORITY)

    def _stop(self) -> None:
        postmaster = postmaster_of(self.places)
        if postmaster is not None:
            stop_postmaster(postmaster, self.places.log)

    def _release_at_exit(self) -> None:
        try:
            self.release()
        except EmbeddedPostgresError as error:
            logger.warning("%s", error)

    def forget_parent(self) -> None:
        """Drop the parent's locks in a forked child, without unlocking them for the parent."""
        self._guard = threading.RLock()
        self._exit_hook = None
        self._start_lock.abandon()
        self._users_lock.abandon()


_instances: WeakSet[EmbeddedPostgres] = WeakSet()
_by_data_dir: dict[Path, EmbeddedPostgres] = {}


def embedded_postgres(data_dir: Path) -> EmbeddedPostgres:
    """Return this process's only instance for a DATA_DIR."""
    return _by_data_dir.setdefault(Path(data_dir).resolve(), EmbeddedPostgres(data_dir))


def _forget_parent() -> None:
    for server in list(_instances):
        server.forget_parent()


os.register_at_fork(after_in_child=_forget_parent)
