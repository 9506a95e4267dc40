"""The commands of the project: `manage.py` in a clone, `whatsapp-memory` once it is installed."""

import errno
import gc
import io
import os
import sys

from memoryproject import __version__, folders

# Where those commands are that work with a database that is prepared.
PREPARED = (
    "sessions_app.",
    "memories_app.",
    "memoryproject.staff_site.",
    "memoryproject.management.commands.check_setup",
    "memoryproject.management.commands.send_test_alert",
)
OUTPUT_FAILED = (errno.EPIPE, errno.ENOSPC, errno.EIO)


def main() -> None:
    """Run the command that the arguments name. It exits where the command fails."""
    try:
        write_utf8()
        if sys.argv[1:] in (["version"], ["--version"]):
            # Django's own command prints Django's version.
            print(__version__)  # noqa: T201
        elif sys.argv[1:] == ["run"]:
            become_server()
        else:
            execute()
    except KeyboardInterrupt:
        # Also while the first packages are imported.
        sys.exit(130)


def write_utf8() -> None:
    """What people wrote is printed as it is stored, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def become_server() -> None:
    """Replace this process's program by the one that starts everything."""
    if not folders.IS_CLONE:
        # A module of the same name in the current folder isn't ours (from Python 3.11 on).
        os.environ["PYTHONSAFEPATH"] = "1"
    os.execv(sys.executable, [sys.executable, "-m", "memoryproject.launch"])  # noqa: S606


def execute() -> None:
    from django.core.management import BaseCommand, ManagementUtility  # noqa: PLC0415 not for all
    from django.db import OperationalError  # noqa: PLC0415

    # Importing makes more than 100,000 objects and hardly any garbage. By default the collector
    # looks through them again and again, for a fifth of the time of a short command.
    gc.set_threshold(100_000)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")

    class Utility(ManagementUtility):
        """Django's own; our commands for a database that is prepared use what is stored there."""

        def fetch_command(self, subcommand: str) -> BaseCommand:
            command = super().fetch_command(subcommand)
            if type(command).__module__.startswith(PREPARED):
                from sessions_app.stored_settings import with_stored_settings  # noqa: PLC0415

                command.handle = with_stored_settings(command.handle)  # type: ignore[method-assign]
            return command

    try:
        Utility(sys.argv).execute()
        sys.stdout.flush()
    except OperationalError as error:
        from memoryproject.foundation.commands import error_words  # noqa: PLC0415 not for all

        sys.exit(f"FATAL: The database cannot be used: {error_words(error)}")
    except OSError as error:
        if error.errno not in OUTPUT_FAILED:
            raise
        # Python would try once more to write what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Whoever has closed a pipe, such as `head`, has enough.
        sys.exit(1 if error.errno == errno.EPIPE else f"FATAL: Can't write: {error.strerror}.")
    finally:
        # Python collects garbage once more when it ends, among all that is loaded. The system frees
        # the memory faster.
        gc.freeze()


if __name__ == "__main__":
    main()
