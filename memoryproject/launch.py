"""`make run`: prepare the installation of a fresh clone, then keep it running until Ctrl-C.

This writes `.env` once, prepares the database and writes supervisor's configuration, for which it
needs Django. What stays as long as the server runs needs little memory: by exec this process
becomes `supervise.py`, with the lock of DATA_DIR.
"""

import os
import signal

# The exit code of a shell for a program that a signal ended is this and the signal's number.
SIGNALLED = 128

if __name__ == "__main__":
    # Ctrl-C during the imports below, which take most of the start, prints no traceback.
    signal.signal(signal.SIGINT, lambda number, _frame: os._exit(SIGNALLED + number))

import fcntl
import socket
import sys
from io import StringIO
from pathlib import Path
from types import FrameType

import django
from django.core.management import CommandError, call_command

from memoryproject.environment import OF_ENV_FILE
from memoryproject.folders import FILES, HOME
from memoryproject.foundation.commands import MEMORY_OFF, error_words
from memoryproject.output import use_lossy_output
from memoryproject.programs import all_programs, supervisor_conf
from memoryproject.supervise import STOPPING

ENV_FILE = """\
# Written once by the first start; it is yours to edit. The environment wins over this file.
# All settings with their meanings: {all_settings}

ENABLE_MEMORY_SYSTEM=true

# The owner's number, the model and WhatsApp are set up in the browser. What is set here wins.
"""


def main() -> int:
    """Prepare the installation and become its supervision. Return the exit code of a failure."""
    use_lossy_output("launcher")
    for number in STOPPING:
        signal.signal(number, stop)
    os.chdir(HOME)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    try:
        write_env_file(HOME / ".env")
        django.setup()
        lock = prepare()
        become_supervision(write_configuration(), lock)
    except (CommandError, django.db.DatabaseError) as error:
        print(f"\nCannot start: {error_words(error)}", file=sys.stderr)  # noqa: T201
    return 1


def stop(number: int, frame: FrameType | None) -> None:
    """End in order, once: the embedded PostgreSQL is stopped where nobody else uses it."""
    for each in STOPPING:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(SIGNALLED + number)


def write_env_file(path: Path) -> None:
    """Write the first settings, unless the file exists. Raises CommandError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(ENV_FILE.format(all_settings=FILES / ".env.example"))
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

    # For what is printed from here on; it may stand in .env.
    os.environ["LOG_FORMAT"] = settings.LOG_FORMAT
    origins = settings.CONFIG_ORIGINS.items()
    os.environ[OF_ENV_FILE] = ",".join(name for name, origin in origins if origin == ".env")
    call_command("check", stdout=StringIO())
    lock = lock_data_dir(settings.DATA_DIR)
    refuse_taken_port(settings.PORT)
    call_command("prepare")
    if not settings.ENABLE_MEMORY_SYSTEM:
        print(f"\n{MEMORY_OFF}")  # noqa: T201
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
    os.write(lock, str(os.getpid()).encode())
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


def write_configuration() -> Path:
    """Write supervisor's configuration; return its path."""
    from django.conf import settings  # noqa: PLC0415 configured by now

    run_dir = settings.DATA_DIR / "run"
    conf: Path = run_dir / "supervisord.conf"
    conf.write_text(
        supervisor_conf(
            all_programs(settings.PORT), run_dir=run_dir, log_dir=settings.LOG_DIR, directory=HOME
        )
    )
    conf.chmod(0o600)
    return conf


def become_supervision(conf: Path, lock: int) -> None:
    """Replace this process's program. The embedded PostgreSQL goes on, for now without a user."""
    from django.conf import settings  # noqa: PLC0415 configured by now

    embedded = "" if settings.DATABASE_URL else settings.DATA_DIR
    command = [sys.executable, "-m", "memoryproject.supervise"]
    url = f"{settings.BASE_URL or f'http://127.0.0.1:{settings.PORT}'}/"
    command += map(str, (conf, settings.PORT, url, settings.LOG_DIR, embedded, lock))
    os.set_inheritable(lock, True)
    sys.stdout.flush()
    # A signal that comes now waits until the other program handles it.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    os.execv(sys.executable, command)  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
