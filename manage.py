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

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
