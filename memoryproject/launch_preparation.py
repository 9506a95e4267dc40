"""The part of `make run` that needs Django: prepare the installation, then end.

`launch.py` starts it in a process of its own and passes a socket. It writes `.env` once, prepares
the database, writes supervisor's configuration, and sends back what the launcher has to know,
together with the lock of DATA_DIR and its use of the embedded PostgreSQL, so that this keeps
running.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import socket
import sys
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from types import FrameType

import django
from django.core.management import CommandError, call_command

from memoryproject.foundation.embedded_postgres import embedded_postgres
from memoryproject.launch import BASE_DIR, Prepared
from memoryproject.programs import all_programs, supervisor_conf

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


def main(launcher: socket.socket) -> int:
    """Prepare the installation, tell the launcher, and return the exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    try:
        write_env_file(BASE_DIR / ".env")
        django.setup()
        lock = prepare()
        send(launcher, write_configuration(), lock)
    except (CommandError, django.db.DatabaseError) as error:
        print(f"\nCannot start: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def write_env_file(path: Path) -> None:
    """Write the demo's settings with fresh secrets, unless the file exists. Raises CommandError."""
    names = ("app_secret", "verify_token", "access_token", "green_token", "green_webhook_token")
    text = ENV_FILE.format(**{name: secrets.token_urlsafe(24) for name in names})
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            # The next start would take what is missing as unset.
            path.unlink()
            raise
    except FileExistsError:
        return
    except OSError as error:
        raise CommandError(
            f"{path} can't be written ({error.strerror}). Start as the user to whom the folder "
            "belongs, or create the file by hand."
        ) from error


def prepare() -> int:
    """Run the checks and prepare tables, schedules and the admin user.

    Return the lock of DATA_DIR. Raises CommandError or DatabaseError.
    """
    from django.conf import settings  # noqa: PLC0415 configured by now
    from django.db import connections  # noqa: PLC0415

    call_command("check", stdout=StringIO())
    lock = lock_data_dir(settings.DATA_DIR)
    refuse_taken_port(settings.PORT)
    call_command("prepare")
    connections.close_all()
    return lock


def lock_data_dir(data_dir: Path) -> int:
    """Return a descriptor that keeps other runs away as long as a process has it open.

    Two runs would answer the same messages from one configuration. Raises CommandError.
    """
    folder = data_dir / "run"
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 20).decode()
        raise CommandError(
            f"Another run (process {holder}) uses {data_dir}, or is still stopping. Stop it, or "
            "set DATA_DIR, LOG_DIR and PORT."
        ) from None
    os.truncate(lock, 0)
    # The launcher's, to which signals are sent.
    os.write(lock, str(os.getppid()).encode())
    return lock


def refuse_taken_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CommandError(
                f"Port {port} is in use ({error.strerror}). Stop what uses it, or set PORT."
            ) from error


def write_configuration() -> Prepared:
    """Write supervisor's configuration."""
    from django.conf import settings  # noqa: PLC0415 configured by now

    run_dir = settings.DATA_DIR / "run"
    conf = run_dir / "supervisord.conf"
    conf.write_text(
        supervisor_conf(
            all_programs(settings.PORT),
            run_dir=run_dir,
            log_dir=settings.LOG_DIR,
            directory=BASE_DIR,
        )
    )
    conf.chmod(0o600)
    return Prepared(
        supervisor_conf=str(conf),
        port=settings.PORT,
        log_dir=str(settings.LOG_DIR),
        data_dir="" if settings.DATABASE_URL else str(settings.DATA_DIR),
    )


def send(launcher: socket.socket, prepared: Prepared, lock: int) -> None:
    """Send the result, with the lock and a use of the embedded PostgreSQL that outlive this."""
    shares = [embedded_postgres(Path(prepared.data_dir)).share()] if prepared.data_dir else []
    socket.send_fds(launcher, [json.dumps(asdict(prepared)).encode()], [lock, *shares])


def stop(number: int, frame: FrameType | None) -> None:
    """End in order, once: the embedded PostgreSQL is stopped where nobody else uses it."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    sys.exit(main(socket.socket(fileno=int(sys.argv[1]))))
