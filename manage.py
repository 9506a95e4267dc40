#!/usr/bin/env python3
"""Runs the project's commands."""

import errno
import gc
import io
import os
import sys

if sys.version_info < (3, 10):
    sys.exit(
        "FATAL: Python 3.10 or newer is required; this is Python %s. "
        "Install Python 3.10 to 3.13 and run again." % sys.version.split()[0]
    )

# Where those commands are that work with a database that is prepared.
PREPARED = (
    "sessions_app.",
    "memories_app.",
    "memoryproject.staff_site.",
    "memoryproject.management.commands.check_setup",
    "memoryproject.management.commands.send_test_alert",
)
OUTPUT_FAILED = (errno.EPIPE, errno.ENOSPC, errno.EIO)


def write_utf8() -> None:
    """What people wrote is printed as it is stored, whatever the locale."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def main() -> None:
    from django.core.management import BaseCommand, ManagementUtility  # noqa: PLC0415 after the check
    from django.db import OperationalError  # noqa: PLC0415

    # Importing makes more than 100,000 objects and hardly any garbage. By default the collector
    # looks through them again and again, for a fifth of the time of a short command.
    gc.set_threshold(100_000)
    write_utf8()
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
        sys.exit(f"FATAL: The database cannot be used: {str(error).strip()}")
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
    try:
        main()
    except KeyboardInterrupt:
        # Also while the first packages are imported.
        sys.exit(130)
