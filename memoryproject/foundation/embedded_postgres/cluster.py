"""Build the cluster (the folder with all data) once, completely or not at all, and check it."""

import os
import pwd
import secrets
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from memoryproject.foundation.embedded_postgres.places import (
    OWN_SERVER,
    POSTGRES_MAJOR,
    EmbeddedPostgresError,
    Places,
    explained,
    postgres_program,
)

ROLE = "memory"
_UNFINISHED = "postgres.new-"
# The collation is PostgreSQL's own and the same on every machine. But its full-text parser asks the
# system which characters are letters, and under plain C it treats "₪5000" and a quoted word as
# single words.
_CHARACTER_TYPES = ("C.UTF-8", "C")
# Written into the cluster's postgresql.conf, where the owner of a larger machine may change them.
_TUNING = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "work_mem": "8MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    "jit": "off",
    # A preview of a forgetting leaves as many dead rows as the forgetting would delete. In a table
    # of a million rows, a fifth is too many to wait for.
    "autovacuum_vacuum_scale_factor": "0.05",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def ensure_cluster(places: Places, account: "ServerAccount") -> None:
    """Build the cluster if there is none, or check the existing one. Call under the start lock.

    Raises EmbeddedPostgresError when it can't be built or is of another PostgreSQL version.
    """
    for leftover in places.data_dir.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if not places.cluster.exists():
        _ensure_password(places.password)
        _build(places, account)
    _check(places)


def server_environment() -> dict[str, str]:
    """Return the environment for the server's programs: no secrets of ours, no PG* variables."""
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {"LC_ALL": "C", **{name: os.environ[name] for name in kept if name in os.environ}}


def _build(places: Places, account: "ServerAccount") -> None:
    # The name is new each time: the programs of a start that was killed may still be writing.
    unfinished = places.data_dir / f"{_UNFINISHED}{secrets.token_hex(4)}"
    for ctype in _CHARACTER_TYPES:
        make_server_folder(unfinished, account)
        result = _initdb(unfinished, places.password, account, ctype)
        if result.returncode == 0 or "locale" not in result.stderr:
            break
    if result.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise EmbeddedPostgresError(
            f"Can't make the database in {places.cluster}. PostgreSQL's initdb says: "
            f"{result.stderr.strip()[-1500:]} Mend that, choose another DATA_DIR, {OWN_SERVER}."
        )
    with explained(f"put the new database in place as {places.cluster}"):
        unfinished.rename(places.cluster)
        descriptor = os.open(places.data_dir, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _initdb(
    folder: Path, password: Path, account: "ServerAccount", ctype: str
) -> subprocess.CompletedProcess[str]:
    tuning = [word for item in _TUNING.items() for word in ("-c", "=".join(item))]
    command = account.command(
        postgres_program("initdb"),
        f"--pgdata={folder}",
        f"--username={ROLE}",
        f"--pwfile={password}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        f"--lc-ctype={ctype}",
        "--data-checksums",
        *tuning,
    )
    return subprocess.run(
        command, capture_output=True, text=True, cwd="/", env=server_environment(), check=False
    )


def _check(places: Places) -> None:
    with explained(f"read {places.cluster}"):
        version_file = places.cluster / "PG_VERSION"
        version = version_file.read_text().strip() if version_file.exists() else None
    if version is None:
        raise EmbeddedPostgresError(
            f"{places.cluster} is not a PostgreSQL cluster (it has no PG_VERSION). Move it away to "
            "start with an empty database, or put your backup of DATA_DIR in its place."
        )
    if version != str(POSTGRES_MAJOR):
        raise EmbeddedPostgresError(
            f"{places.cluster} was made by PostgreSQL {version}, and the installed one is "
            f"{POSTGRES_MAJOR}, which can't open it. Export it with the release that made it, or "
            f"install that release's requirements.txt, or choose another DATA_DIR, {OWN_SERVER}."
        )
    if not places.password.exists():
        raise EmbeddedPostgresError(
            f"{places.password}, the password of the database in {places.cluster}, is missing. "
            "Put it back from a backup of DATA_DIR; every copy since the first start has it."
        )


def _ensure_password(path: Path) -> None:
    if path.exists():
        return
    unfinished = path.with_name(f"{path.name}.new")
    with explained(f"write {path}"):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(unfinished, flags, PRIVATE_FILE), "w") as file:
            file.write(secrets.token_urlsafe(32))
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)


# Make the folders of the embedded server private, and refuse folders that another user owns.

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def prepare_folders(places: Places, account: "ServerAccount") -> None:
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


def make_server_folder(folder: Path, account: "ServerAccount") -> None:
    """Make a folder (if it doesn't exist) that only the server account may use."""
    with explained(f"make the folder {folder}"):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        _give_to(folder, account, PRIVATE_FOLDER)


def make_server_file(path: Path, account: "ServerAccount") -> None:
    """Make a file (if it doesn't exist) that only the server account may read and write."""
    with explained(f"write {path}"):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE))
        _give_to(path, account, PRIVATE_FILE)


def _give_to(path: Path, account: "ServerAccount", mode: int) -> None:
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


def _check_cluster_owner(cluster: Path, account: "ServerAccount") -> None:
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


# The user that the server runs as, and the commands that start its programs as that user.


ROOT = 0
UNPRIVILEGED_USER = "nobody"
# Linux's numbers (linux/capability.h). The weaker of the two is preferred.
_SETPCAP = 8
_TRAVERSAL_CAPABILITIES = (("dac_read_search", 2), ("dac_override", 1))
_REMEDY = "Run as an ordinary user, or set DATABASE_URL to a PostgreSQL server of your own."


@dataclass(frozen=True)
class ServerAccount:
    """A user id with its group and name, and the command prefix to run programs as that user."""

    uid: int
    gid: int
    name: str
    prefix: tuple[str, ...] = ()

    def command(self, program: Path, *arguments: str) -> list[str]:
        """Return the full command that runs ``program`` as this account."""
        return [*self.prefix, str(program), *arguments]


def server_account() -> ServerAccount:
    """Return the account that the server runs as: this process's own or, for root, ``nobody``.

    Raises EmbeddedPostgresError when root has no means to become ``nobody``.
    """
    uid = os.geteuid()
    if uid == ROOT:
        return nobody_account(setpriv=shutil.which("setpriv"), capabilities=_own_capabilities())
    return ServerAccount(uid=uid, gid=os.getegid(), name=user_name(uid))


def nobody_account(*, setpriv: str | None, capabilities: int) -> ServerAccount:
    """Return the account ``nobody``, entered from root.

    setpriv: the path of util-linux's program, None when it is not installed.
    capabilities: bit mask of the capabilities that root may pass on.

    Raises EmbeddedPostgresError when either is not enough.
    """
    if setpriv is None:
        raise EmbeddedPostgresError(
            "PostgreSQL refuses to run as root, and the program setpriv, which would start it as "
            f"'{UNPRIVILEGED_USER}', is missing. Install the package util-linux. {_REMEDY}"
        )
    granted = [name for name, bit in _TRAVERSAL_CAPABILITIES if capabilities >> bit & 1]
    if not granted:
        raise EmbeddedPostgresError(
            "PostgreSQL refuses to run as root, and here root lacks the capability "
            "CAP_DAC_READ_SEARCH (or CAP_DAC_OVERRIDE) that lets another user reach DATA_DIR. "
            f"Grant it to the container. {_REMEDY}"
        )
    try:
        entry = pwd.getpwnam(UNPRIVILEGED_USER)
    except KeyError:
        raise EmbeddedPostgresError(
            "PostgreSQL refuses to run as root, and this system has no user "
            f"'{UNPRIVILEGED_USER}' to run it as. Create that user. {_REMEDY}"
        ) from None
    # PostgreSQL looks for its own programs with access(2), which ignores capabilities unless this
    # bit is set. It matters only where the virtual environment is in a folder that only root may
    # enter.
    may_set_securebits = capabilities >> _SETPCAP & 1
    prefix = (
        setpriv,
        f"--reuid={entry.pw_uid}",
        f"--regid={entry.pw_gid}",
        "--clear-groups",
        f"--inh-caps=+{granted[0]}",
        f"--ambient-caps=+{granted[0]}",
        *(("--securebits=+no_setuid_fixup",) if may_set_securebits else ()),
        "--",
    )
    return ServerAccount(entry.pw_uid, entry.pw_gid, UNPRIVILEGED_USER, prefix)


def user_name(uid: int) -> str:
    """Return the name of a user, or ``uid N`` for one without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _own_capabilities() -> int:
    """Return the capabilities that this process may pass on; 0 if unknown.

    These are its permitted set within its bounding set.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    masks = dict(line.split(":\t", 1) for line in status.splitlines() if line.startswith("Cap"))
    return int(masks.get("CapPrm", "0"), 16) & int(masks.get("CapBnd", "0"), 16)
