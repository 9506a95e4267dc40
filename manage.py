#!/usr/bin/env python3
"""Runs the project's commands."""

import sys

if sys.version_info < (3, 10):
    sys.exit(
        "FATAL: Python 3.10 or newer is required; this is Python %s. "
        "Install Python 3.10 to 3.13 and run again." % sys.version.split()[0]
    )

from memoryproject.__main__ import main as main

if __name__ == "__main__":
    main()
