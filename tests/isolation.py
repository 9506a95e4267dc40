"""Loaded before Django: tests run in folders of their own, untouched by the user's settings."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]

# An empty value counts as unset and wins over the user's .env.
for name in re.findall(
    r"^#?\s?([A-Z][A-Z0-9_]+)=", (PROJECT / ".env.example").read_text(), re.MULTILINE
):
    os.environ[name] = ""

_folder = Path(tempfile.mkdtemp(prefix="memory-tests-"))
os.environ["DATA_DIR"] = str(_folder / "data")
os.environ["LOG_DIR"] = str(_folder / "logs")
os.environ["ENABLE_MEMORY_SYSTEM"] = "true"
# Tests start many processes, each of which would compile all of our modules again; so would the
# next run, and pytest compiles the modules of the tests at each run where it may not keep them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What the processes of one run share: xdist's workers have their starter's environment.
os.environ.setdefault("TESTS_SHARED_FOLDER", str(_folder / "shared"))
# A database server that is given is used for the tests, too (in a test database).
if os.environ.get("TEST_DATABASE_URL"):
    os.environ["DATABASE_URL"] = os.environ["TEST_DATABASE_URL"]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the tests' own PostgreSQL and remove its data."""
    from django.conf import settings  # noqa: PLC0415 this module is loaded before Django
    from django.db import connections  # noqa: PLC0415

    from memoryproject.foundation.embedded_postgres import embedded_postgres  # noqa: PLC0415

    if settings.configured:
        connections.close_all()
        embedded_postgres(Path(os.environ["DATA_DIR"])).release()
    shutil.rmtree(_folder, ignore_errors=True)
