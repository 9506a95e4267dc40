"""clients/python: its tests, its types and its programs, with the wheel as users install it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.clients.environments import CLIENTS, require
from tests.loopback.openai_http import RESPONSES
from tests.processes.installation import free_port
from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

SOURCE = CLIENTS / "python"
PATIENCE = 600
PRINTED = {
    "client.py": [
        "remembered: SampleCorp pays in 14 days (chat)",
        "listed: SampleCorp pays in 14 days",
        "recalled: SampleCorp pays in 14 days",
        "answered from 1 memories",
        "changed: It pays in 30 days",
        "forgotten: memory, absent",
        "once more: not_found",
    ],
    "langgraph_store.py": [
        "found: Dana lives in Haifa",
        "newer: ['diet']",
        "namespaces: [('dana', 'cart'), ('dana', 'facts')]",
        "cart: None",
    ],
    "langchain_history.py": [
        "human: What does the bread cost?",
        "ai: Five.",
        "human: And when do you open?",
        "ai: From eight on.",
    ],
    "agents_session.py": [
        "answer to: What does the bread cost?",
        "answer to: And the rolls?",
        "items: 4",
    ],
    "pydantic_ai_history.py": [
        "answer to: What does the bread cost?",
        "answer to: And the rolls?",
        "messages: 4",
    ],
}


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python of the frameworks."""
    require(CLIENTS / ".venv" / ".installed-python", "client-env")
    return CLIENTS / ".venv" / "bin" / "python"


@pytest.fixture(scope="module")
def installed(python: Path) -> Iterator[Path]:
    """A folder in which the wheel is installed."""
    with tempfile.TemporaryDirectory(prefix="client-") as name:
        folder = Path(name)
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
        subprocess.run([*build, "--directory", folder], cwd=SOURCE, check=True)
        (wheel,) = folder.glob("*.whl")
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        packages = folder / "packages"
        subprocess.run([python, *install, "--target", packages, wheel], check=True)
        yield packages


@pytest.fixture(scope="module")
def environment(installed: Path, server: Stage) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {
        **kept,
        "PYTHONPATH": str(installed),
        "SERVER": server.installation.url,
        "TOKEN": server.installation.manage("create_api_token", "python-client").strip(),
        "OPENAI_BASE_URL": server.openai.base_url,
        "OPENAI_API_KEY": "none",
    }


def run(command: Sequence[str | Path], environment: dict[str, str], folder: Path) -> list[str]:
    """Run a program of the client's environment; return the lines that it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_what_is_generated_is_what_the_schema_and_the_client_say() -> None:
    spec = importlib.util.spec_from_file_location("generate", SOURCE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    schema = StringIO()
    call_command("spectacular", "--format", "openapi-json", stdout=schema)
    for name, text in generate.generated(json.loads(schema.getvalue())).items():
        found = (generate.PACKAGE / name).read_text(encoding="utf-8")
        assert found == text, f"{name} is old: make client"


@pytest.mark.processes
def test_its_own_tests_pass(python: Path, environment: dict[str, str]) -> None:
    run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider"], environment, SOURCE)


@pytest.mark.processes
def test_its_types_are_right(python: Path, installed: Path) -> None:
    """Of a program that uses it, too: the wheel has its types."""
    cache = {"MYPY_CACHE_DIR": str(CLIENTS / ".venv" / "mypy_cache"), "PYTHONPATH": str(installed)}
    checked = [installed / "whatsapp_memory_client", SOURCE / "examples"]
    run([python, "-m", "mypy", "--strict", *checked], {**os.environ, **cache}, installed)


@pytest.mark.processes
@pytest.mark.parametrize("name", PRINTED)
def test_its_programs_do_what_they_say(
    python: Path, environment: dict[str, str], name: str
) -> None:
    printed = run([python, "-W", "error", SOURCE / "examples" / name], environment, SOURCE)
    assert printed == PRINTED[name]


@pytest.mark.processes
def test_agents_get_the_memory_by_their_base_url(
    python: Path, environment: dict[str, str], server: Stage
) -> None:
    """They call a tool, hand over, and stream; each call is stored once."""
    program = SOURCE / "examples" / "agents_responses.py"
    assert run([python, "-W", "error", program], environment, SOURCE) == [
        "answer to: The bread costs five.",
        "baker: answer to: The bread costs five.",
        "answer |to: |Is |the |bread |dear?",
    ]
    last = [each.body for each in server.openai.requests if each.path == RESPONSES][-1]
    assert last is not None
    assert last["instructions"].startswith("You greet.\n\nIt is ")
    assert "The bread costs five." in last["instructions"]
    stored = server.database.rows(
        "SELECT message.role FROM sessions_app_message AS message"
        " JOIN sessions_app_chat AS chat ON chat.id = message.chat_id"
        " WHERE chat.whatsapp_chat = 'agents-responses@external' ORDER BY message.order_num"
    )
    tool = ["assistant", "tool"]
    assert [row["role"] for row in stored] == [
        *("user", *tool, "assistant"),
        *("user", *tool, *tool, "assistant"),
        *("user", "assistant"),
    ]


@pytest.mark.processes
def test_a_receiver_takes_what_the_server_posts(
    python: Path, environment: dict[str, str], server: Stage
) -> None:
    port = free_port()
    manage = server.installation.manage
    secret = manage("webhook_endpoint", "add", "client", f"http://127.0.0.1:{port}/").strip()
    program = [python, SOURCE / "examples" / "webhook_receiver.py"]
    settings = {**environment, "PORT": str(port), "SECRET": secret}
    with subprocess.Popen(program, env=settings, stdout=subprocess.PIPE, text=True) as receiver:
        try:
            tried = ("webhook_endpoint", "test", "client")
            wait_until(lambda: server.installation.attempt(*tried).returncode == 0, "it is taken")
        finally:
            receiver.terminate()
        printed, _ = receiver.communicate()
    assert printed.startswith("evt_")
    assert "webhook.test" in printed


def test_the_docs_show_each_program() -> None:
    text = (CLIENTS.parent / "docs" / "sdk.md").read_text(encoding="utf-8")
    for program in (SOURCE / "examples").glob("*.py"):
        assert f"examples/{program.name}" in text, program
