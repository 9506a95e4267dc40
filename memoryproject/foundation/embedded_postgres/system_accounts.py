"""The user that the server runs as, and the commands that start its programs as that user.

PostgreSQL refuses to run as root. Root starts it as ``nobody``, with one capability that lets it
pass through folders that only root may enter. So no folder has to be opened to other users.
"""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path

from memoryproject.foundation.embedded_postgres.places import EmbeddedPostgresError

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
