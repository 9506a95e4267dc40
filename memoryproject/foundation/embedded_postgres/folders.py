"""Make the folders of the embedded server private, and refuse folders that another user owns."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from memoryproject.foundation.embedded_postgres.errors import (
    OWN_SERVER,
    EmbeddedPostgresError,
    explained,
)
from memoryproject.foundation.embedded_postgres.places import Places
from memoryproject.foundation.embedded_postgres.system_accounts import (
    ROOT,
    ServerAccount,
    user_name,
)

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def prepare_folders(places: Places, account: ServerAccount) -> None:
    """Make DATA_DIR (mode 700) and, where it is used, the folder in /tmp for the socket.

    Raises EmbeddedPostgresError, before anything is changed, when another user owns one of them.
    """
    with explained(f"use the folder {places.data_dir} (DATA_DIR)"):
        _check_data_dir(places.data_dir)
        _check_cluster_owner(places.cluster, account)
        places.data_dir.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        _set_mode(places.data_dir, PRIVATE_FOLDER)
    if places.socket_root != places.data_dir:
        with explained(f"use the folder {places.socket_root} for the database's socket"):
            places.socket_root.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            _check_socket_root(places.socket_root)


def make_server_folder(folder: Path, account: ServerAccount) -> None:
    """Make a folder (if it doesn't exist) that only the server account may use."""
    with explained(f"make the folder {folder}"):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        _give_to(folder, account, PRIVATE_FOLDER)


def make_server_file(path: Path, account: ServerAccount) -> None:
    """Make a file (if it doesn't exist) that only the server account may read and write."""
    with explained(f"write {path}"):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE))
        _give_to(path, account, PRIVATE_FILE)


def _give_to(path: Path, account: ServerAccount, mode: int) -> None:
    if path.stat().st_uid != account.uid:
        os.chown(path, account.uid, account.gid)
    _set_mode(path, mode)


def _set_mode(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)


def _check_data_dir(data_dir: Path) -> None:
    try:
        info = data_dir.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(info.st_mode):
        raise EmbeddedPostgresError(f"DATA_DIR is {data_dir}, which is not a folder. Set another.")
    if info.st_mode & stat.S_ISVTX or data_dir == data_dir.parent:
        raise EmbeddedPostgresError(
            f"DATA_DIR is {data_dir}, a folder that all users of this machine share, and it would "
            "be closed to them (mode 700). Set DATA_DIR to a folder of its own, for instance "
            f"{data_dir / 'memory-data'}."
        )
    own = os.geteuid()
    if own not in (ROOT, info.st_uid):
        raise _foreign(data_dir, "DATA_DIR", owner=user_name(info.st_uid), runner=user_name(own))


def _check_cluster_owner(cluster: Path, account: ServerAccount) -> None:
    try:
        owner = cluster.stat().st_uid
    except FileNotFoundError:
        return
    if owner != account.uid:
        raise _foreign(
            cluster, "the database", owner=user_name(owner), runner=user_name(os.geteuid())
        )


def _foreign(path: Path, what: str, *, owner: str, runner: str) -> EmbeddedPostgresError:
    started_by = "root (whose server runs as nobody)" if owner == "nobody" else owner
    return EmbeddedPostgresError(
        f"{path} ({what}) belongs to the user '{owner}', but this process runs as '{runner}'. Run "
        f"it as the user that first started it, {started_by}, or choose another DATA_DIR, "
        f"{OWN_SERVER}."
    )


def _check_socket_root(folder: Path) -> None:
    # Any user can create a folder of this name in /tmp first, or a link to a place of their own.
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
        raise EmbeddedPostgresError(
            f"The database's socket would go to {folder}, but that is not a private folder of the "
            f"user '{user_name(os.geteuid())}' (its owner is '{user_name(info.st_uid)}'). Remove "
            f"it, or set DATA_DIR to a path of fewer than 70 characters without a comma or a quote."
        )
