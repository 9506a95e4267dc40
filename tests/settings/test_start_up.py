"""What a command imports before it does anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Packages that are slow to import, and that few commands need.
SLOW = (
    "PIL",
    "django.test",
    "docx",
    "drf_spectacular.generators",
    "httpcore",
    "httpx",
    "huggingface_hub",
    "jinja2",
    "lxml",
    "mcp",
    "model2vec",
    "numpy",
    "openai",
    "opentelemetry",
    "phonenumbers",
    "playwright",
    "pydantic",
    "pypdf",
    "qrcode",
    "redis",
    "reportlab",
    "snowballstemmer",
    "starlette",
    "stdnum",
    "tokenizers",
    "uvicorn",
    "wordllama",
)
SETUP = "import django, sys; from django.core import management; django.setup(); "


@pytest.mark.parametrize(
    "does",
    [
        pytest.param("management.call_command('check')", id="check"),
        pytest.param("management.load_command_class('sessions_app', 'chat')", id="chat"),
    ],
)
@pytest.mark.processes
def test_commands_import_no_slow_package(does: str) -> None:
    shown = f"print('imported', *sorted(set({SLOW!r}) & set(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", f"{SETUP}{does}; {shown}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ended.stdout.splitlines()[-1] == "imported"
