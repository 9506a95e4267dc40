"""What a command imports before it does anything."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

import pytest
from django.core.management import load_command_class
from django.urls import Resolver404, resolve

from memoryproject.checks import SETTINGS
from tests.programs import PROJECT, python

# Packages that are slow to import, and that few commands need.
SLOW = """
PIL boto3 botocore django.test docx drf_spectacular.generators httpcore httpx huggingface_hub
jinja2 lxml mcp model2vec numpy openai opentelemetry phonenumbers playwright pydantic pypdf qrcode
redis snowballstemmer starlette stdnum storages tokenizers uvicorn wordllama
"""
# What the process that stays beside the server as long as it runs must not hold.
NOT_IN_LAUNCHER = ("asyncio", "django", "email", "environ", "http", "psutil", "psycopg", "ssl")
SETUP = "import django, sys; from django.core import management; django.setup(); "


def imported(code: str, names: Collection[str]) -> list[str]:
    """Which of these modules a new process has after the code."""
    shown = f"print('imported', *sorted(set({list(names)!r}) & set(sys.modules)))"
    ended = python("-c", f"{code}; {shown}")
    first, *found = ended.stdout.splitlines()[-1].split()
    assert first == "imported"
    return found


@pytest.mark.parametrize(
    ("does", "needed"),
    [
        # It tries the default embedder, whose vectors are arrays.
        pytest.param("management.call_command('check')", {"numpy"}, id="check"),
        pytest.param("management.load_command_class('sessions_app', 'chat')", set(), id="chat"),
    ],
)
@pytest.mark.processes
def test_commands_import_no_slow_package(does: str, needed: set[str]) -> None:
    assert set(imported(f"{SETUP}{does}", SLOW.split())) <= needed


# Prints which of some modules are loaded, and what must not be there when processes are forked.
LOADED = """
import json, sys, threading
from django.db import connection
print(json.dumps({
    "loaded": sorted(set(WANTED) & set(sys.modules)),
    "threads": threading.active_count(),
    "connected": connection.connection is not None,
}))
"""
OF_STAFF = ["memoryproject.staff_site.site", "memoryproject.urls", "sessions_app.api.urls"]
OF_RECALL = ["numpy", "sessions_app.recall.message_ranking", "tokenizers"]
OF_WORK = ["httpx", "openai.types.chat", "sessions_app.tasks"]


def loaded_by(program: str, tmp_path: Path, **environment: str) -> dict[str, object]:
    """What a program, which has no database, has loaded when it is ready to fork."""
    wanted = f"WANTED = {[*OF_STAFF, *OF_RECALL, *OF_WORK]!r}"
    settings = {
        # Nobody listens there.
        "DATABASE_URL": f"postgresql://nobody@/none?host={tmp_path}",
        "ENABLE_MEMORY_SYSTEM": "true",
        "EMBEDDER": "wordllama",
        "CHAT_MODEL": "openai",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }
    code = f"{program}\n{wanted}\n{LOADED}"
    ended = python("-c", code, folder=tmp_path, check=False, **{**settings, **environment})
    assert ended.returncode == 0, ended.stderr
    found: dict[str, object] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.processes
@pytest.mark.parametrize(
    ("settings_module", "wanted"),
    [("memoryproject.settings", [*OF_STAFF, *OF_RECALL]), ("memoryproject.webhook_settings", [])],
    ids=["web", "webhooks"],
)
def test_a_web_server_shares_it(tmp_path: Path, settings_module: str, wanted: list[str]) -> None:
    """Also after it has built what takes messages in, which names the chat model."""
    program = (
        "import memoryproject.wsgi\n"
        "from sessions_app.inbound.dependencies import build_intake_rules\n"
        "assert build_intake_rules()"
    )
    found = loaded_by(program, tmp_path, DJANGO_SETTINGS_MODULE=settings_module)
    loaded = set(map(str, found.pop("loaded")))  # type: ignore[call-overload]
    assert loaded - {"httpx", "sessions_app.tasks"} == set(wanted)
    assert found == {"threads": 1, "connected": False}


def test_qcluster_does_not_check_the_addresses() -> None:
    """Those checks would load the staff's pages and the API into every worker."""
    assert load_command_class("memoryproject", "qcluster").requires_system_checks == (SETTINGS,)


def test_the_webhooks_server_serves_what_the_front_door_sends_there() -> None:
    caddyfile = (PROJECT / "deploy" / "Caddyfile").read_text(encoding="utf-8")
    (line,) = re.findall(r"@webhooks path (.+)", caddyfile)
    assert line.split() == ["/webhooks/whatsapp/*", "/healthz", "/readyz"]
    for path in ("/webhooks/whatsapp/cloud/", "/webhooks/whatsapp/green/", "/healthz", "/readyz"):
        everywhere, here = (
            resolve(path, urlconf)
            for urlconf in ("memoryproject.urls", "memoryproject.webhook_urls")
        )
        assert (here.func, here.url_name) == (everywhere.func, everywhere.url_name)
    with pytest.raises(Resolver404):
        resolve("/admin/", "memoryproject.webhook_urls")


@pytest.mark.processes
def test_the_launcher_imports_neither_django_nor_a_driver() -> None:
    assert imported("import sys, memoryproject.supervise", NOT_IN_LAUNCHER) == []
