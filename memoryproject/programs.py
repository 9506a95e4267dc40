"""The programs that `make run` keeps running, and supervisor's configuration for them."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memoryproject.ends_with_parent import ending_with_parent
from memoryproject.front_door import FrontDoor

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
        front_door.live_address,
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
