"""`make run`: start everything from a fresh clone and keep it running until Ctrl-C.

Writes `.env` once, prepares the database, then lets supervisor run the programs of `programs.py`.
Every process that uses the embedded PostgreSQL keeps it running; this process is its last user.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from io import StringIO
from pathlib import Path

import django
from django.core.management import CommandError, call_command

from memoryproject.foundation.embedded_postgres import embedded_postgres
from memoryproject.front_door import FrontDoor, FrontDoorError, socket_folder
from memoryproject.programs import all_programs, supervisor_conf

BASE_DIR = Path(__file__).resolve().parent.parent
READY_WITHIN_SECONDS = 90

ENV_FILE = """\
# Written once by `make run`; it is yours to edit. The environment wins over this file.
# All settings with their meanings: .env.example

ENABLE_MEMORY_SYSTEM=true

# --- demo values, for `make demo` -------------------------------------------------
# The providers' addresses are loopback servers that the demo starts, so that nothing
# leaves this machine. For real WhatsApp replace them: see docs/whatsapp.md.
GODFATHER_PHONE=15550199999@c.us
WHATSAPP_CLOUD_API_URL=http://127.0.0.1:8791/v24.0
WHATSAPP_CLOUD_PHONE_NUMBER_ID=100000000000001
WHATSAPP_CLOUD_APP_SECRET={app_secret}
WHATSAPP_CLOUD_VERIFY_TOKEN={verify_token}
WHATSAPP_CLOUD_ACCESS_TOKEN={access_token}
GREEN_API_URL=http://127.0.0.1:8792
GREEN_API_ID_INSTANCE=1101000001
GREEN_API_TOKEN={green_token}
GREEN_API_WEBHOOK_TOKEN={green_webhook_token}
"""


def main() -> int:
    """Run the server and return the exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    os.chdir(BASE_DIR)
    write_env_file(BASE_DIR / ".env")
    django.setup()
    try:
        prepare()
    except (CommandError, django.db.DatabaseError) as error:
        print(f"\nCannot start: {error}", file=sys.stderr)  # noqa: T201
        return 1
    try:
        return run_until_stopped()
    except FrontDoorError as error:
        print(f"\nCannot start: {error}", file=sys.stderr)  # noqa: T201
        return 1
    finally:
        release_database()


def release_database() -> None:
    """Stop the embedded PostgreSQL as its last user: web server and workers have ended by now."""
    from django.conf import settings  # noqa: PLC0415 configured by now

    if not settings.DATABASE_URL:
        embedded_postgres(settings.DATA_DIR).release()


def write_env_file(path: Path) -> bool:
    """Write the demo's settings with fresh secrets, unless the file exists."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    names = ("app_secret", "verify_token", "access_token", "green_token", "green_webhook_token")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(ENV_FILE.format(**{name: secrets.token_urlsafe(24) for name in names}))
    return True


def prepare() -> None:
    """Run the checks and prepare tables, schedules and the admin user.

    Raises CommandError or DatabaseError.
    """
    from django.conf import settings  # noqa: PLC0415 configured by now
    from django.db import connections  # noqa: PLC0415

    call_command("check", stdout=StringIO())
    refuse_taken_port(settings.PORT)
    call_command("prepare")
    # This process stays a user of the embedded server, but no longer needs a connection.
    connections.close_all()


def refuse_taken_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CommandError(
                f"Port {port} is in use ({error.strerror}). Stop what uses it, or set PORT."
            ) from error


def run_until_stopped() -> int:
    """Run all programs under supervisor. Return when supervisor ends. Raises FrontDoorError."""
    from django.conf import settings  # noqa: PLC0415 configured by now

    run_dir = settings.DATA_DIR / "run"
    run_dir.mkdir(mode=0o700, exist_ok=True)
    sockets = socket_folder(run_dir)
    front_door = FrontDoor(
        port=settings.PORT,
        run_dir=run_dir,
        socket_dir=sockets,
        behind_proxies=settings.TRUSTED_PROXIES > 0,
    )
    try:
        conf = run_dir / "supervisord.conf"
        conf.write_text(
            supervisor_conf(
                all_programs(front_door),
                run_dir=run_dir,
                log_dir=settings.LOG_DIR,
                directory=BASE_DIR,
            )
        )
        conf.chmod(0o600)
        return supervise(conf, port=settings.PORT, log_dir=settings.LOG_DIR)
    finally:
        if sockets != run_dir:
            shutil.rmtree(sockets, ignore_errors=True)


def supervise(conf: Path, *, port: int, log_dir: Path) -> int:
    """Run supervisor until it ends."""
    command = [sys.executable, "-W", "ignore", "-m", "supervisor.supervisord", "-c", str(conf)]
    supervisor = subprocess.Popen(command, umask=0o077)  # noqa: S603
    # Ctrl-C reaches the whole group, `kill` only this process: supervisor stops either way.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: supervisor.terminate())
    announce(port, log_dir, supervisor)
    supervisor.wait()
    return 0


def announce(port: int, log_dir: Path, supervisor: subprocess.Popen[bytes]) -> None:
    """Print the addresses once the server is ready."""
    url = f"http://127.0.0.1:{port}/"
    for _ in range(READY_WITHIN_SECONDS * 2):
        if supervisor.poll() is not None:
            return
        if _is_ready(f"{url}readyz"):
            say(f"\nReady: {url} (admin: {url}admin/). Stop with Ctrl-C.\nLogs: {log_dir}\n")
            return
        time.sleep(0.5)
    say(f"\nNot ready yet: see {url}readyz for what is missing, and the logs in {log_dir}.\n")


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
