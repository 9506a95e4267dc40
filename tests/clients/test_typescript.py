"""The packages of npm in clients/: built from the server's schema of today, and run against the
real server with programs that wait for messages, a model and webhooks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.processes.conftest import everything
from tests.processes.installation import free_port
from tests.processes.stage import Stage, stage
from tests.processes.stand_ins import asked
from tests.programs import PROJECT, python

pytestmark = pytest.mark.processes

CLIENTS = PROJECT / "clients"
SDK = CLIENTS / "typescript"
PATIENCE = 240
OLDEST_NODE = 18
HOOK_CHAT = "hooks-of-tests@external"
QUESTION = "When does TestCorp pay?"
FACT = "TestCorp pays in 30 days"
PROXIED = ("openai", "vercel-ai", "langchain")


def run(*command: str, folder: Path = SDK, environment: Mapping[str, str] | None = None) -> str:
    """Run a program to its end; return what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def require_tools() -> None:
    """Skips where Node or the packages aren't there; never where all of it must be."""
    missing = ""
    if shutil.which("npm") is None or major_version() < OLDEST_NODE:
        missing = f"Node {OLDEST_NODE} or newer, with npm, is not installed here"
    elif not (CLIENTS / "node_modules/.installed").exists():
        missing = "the packages of clients/ are not installed: run `make client-env-node`"
    if missing and os.environ.get("CI", "").lower() not in ("1", "true"):
        pytest.skip(missing)
    assert not missing, missing


def major_version() -> int:
    return int(run("node", "--version").removeprefix("v").partition(".")[0])


@pytest.fixture(scope="module")
def built() -> None:
    """The packages, by the schema of the server that is tested."""
    require_tools()
    python("manage.py", "spectacular", "--format", "openapi-json", "--file", f"{SDK}/schema.json")
    run("npm", "run", "build", folder=CLIENTS)
    run("npm", "run", "check")


@dataclass(frozen=True)
class Server:
    """What the programs are told of the server, and the server."""

    stage: Stage
    environment: dict[str, str]

    def remember(self, content: str, chat: str) -> None:
        answer = httpx.post(
            f"{self.environment['MEMORY_URL']}/api/v1/memories/",
            headers={"Authorization": f"Bearer {self.environment['MEMORY_TOKEN']}"},
            json={"content": content, "whatsapp_chat": chat},
            timeout=60,
        )
        assert answer.is_success, answer.text


@pytest.fixture(scope="module")
def server(built: None) -> Iterator[Server]:
    with stage(
        run=everything,
        EMBEDDER="wordllama",
        EXTRACT_MEMORIES="true",
        WEBHOOKS_ALLOW_HTTP="true",
        WEBHOOKS_PRIVATE_NETWORKS="127.0.0.0/8",
    ) as started:
        manage, port = started.installation.manage, free_port()
        place = f"http://127.0.0.1:{port}/"
        hook = manage("webhook_endpoint", "add", "npm", place, "--chat", HOOK_CHAT)
        environment = {
            "MEMORY_URL": started.installation.url,
            "MEMORY_TOKEN": manage("create_api_token", "npm").strip(),
            "HOOK_PORT": str(port),
            "HOOK_SECRET": hook.strip(),
            "HOOK_CHAT": HOOK_CHAT,
        }
        yield Server(started, environment)


def test_the_client_does_what_it_promises(server: Server) -> None:
    run("npm", "test", environment=server.environment)


def test_the_quickstart_prints_what_it_says(server: Server) -> None:
    printed = run("node", "build/examples/quickstart.js", environment=server.environment)
    assert printed.splitlines() == [
        "remembered: We open at 9 created",
        "recalled: We open at 9",
        "answer to: When do you open?",
        "answered: answered",
        "for a model of your own: system, user, assistant, user",
        "listed: We open at 9",
        "forgotten: absent",
        "once more: not_found 404",
    ]


@pytest.mark.parametrize("name", PROXIED)
def test_a_client_of_openai_has_memory_by_its_address(server: Server, name: str) -> None:
    chat = f"{name}@external"
    server.remember(FACT, chat)
    before = len(server.stage.openai.chat_bodies)
    told = {**server.environment, "MEMORY_CHAT": chat}
    printed = run("node", f"build/examples/{name}.js", environment=told)
    said = f"answer to: {QUESTION}"
    assert printed.splitlines() == [f"whole: {said}", f"streamed: {said}"]
    # Facts are looked for meanwhile, too.
    prompts = [body for body in server.stage.openai.chat_bodies[before:] if asked(body) == QUESTION]
    assert len(prompts) == 2
    assert all(FACT in json.dumps(body["messages"]) for body in prompts)


def test_the_nodes_of_n8n_do_what_they_promise(server: Server) -> None:
    run("npm", "test", folder=CLIENTS / "n8n", environment=server.environment)


@pytest.mark.usefixtures("built")
def test_the_packages_hold_all_that_they_name_and_nothing_else() -> None:
    listed = json.loads(run("npm", "pack", "--workspaces", "--dry-run", "--json", folder=CLIENTS))
    for package in listed:
        names = {each["path"] for each in package["files"]}
        about = json.loads((folder_of(package["name"]) / "package.json").read_text("utf-8"))
        nodes = about.get("n8n", {})
        parts = [*nodes.get("nodes", []), *nodes.get("credentials", [])]
        parts += [*about.get("imports", {}).get("#crypto", {}).values()]
        parts += [*about.get("exports", {}).get(".", {}).values()]
        assert {"README.md", *(part.removeprefix("./") for part in parts)} <= names
        assert all(re.match(r"dist/(?!test)|package.json|README.md", name) for name in names)
    assert len(listed) == 2


def folder_of(package: str) -> Path:
    return (CLIENTS / "node_modules" / package).resolve()


def test_the_lock_file_names_no_registry() -> None:
    lock = (CLIENTS / "package-lock.json").read_text(encoding="utf-8")
    assert "http" not in "".join(
        str(package.get("resolved", "")) for package in json.loads(lock)["packages"].values()
    )
