#!/usr/bin/env python3
"""Runs the project's commands."""

import os
import sys

if sys.version_info < (3, 10):
    sys.exit(
        "FATAL: Python 3.10 or newer is required; this is Python %s. "
        "Install Python 3.10 to 3.13 and run again." % sys.version.split()[0]
    )


def main() -> None:
    from django.core.management import execute_from_command_line  # noqa: PLC0415 after the check
    from django.db import OperationalError  # noqa: PLC0415

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        sys.exit(f"FATAL: The database cannot be used: {str(error).strip()}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
