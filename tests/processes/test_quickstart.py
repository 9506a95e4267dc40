"""docs/quickstart.md: its commands as they are printed, in their order, in a fresh clone with
`make run` beside it, and what they print."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.sources import read
from tests.processes.clone import Clone, cloned, press_ctrl_c

pytestmark = pytest.mark.processes

# The one thing that is not as printed: each test has a port of its own.
PRINTED_SERVER = "http://127.0.0.1:8000"
PATIENCE = 300
END = "— end of what step {} prints —"


@dataclass(frozen=True)
class Step:
    """One command, over several lines where it is printed so, and what is shown below it."""

    command: str
    shown: str


def steps(document: str) -> list[Step]:
    """What stands after "$" in its indented blocks."""
    found: list[Step] = []
    for block in re.findall(r"(?:^(?: {4}.*)?\n)+", document, re.M):
        lines = [line[4:] for line in block.strip("\n").split("\n")]
        if lines[0].startswith("$ "):
            found += _of_block(lines)
    return found


def _of_block(lines: list[str]) -> Iterator[Step]:
    rest = lines
    while rest:
        size = _command_size(rest)
        command = "\n".join(rest[:size]).removeprefix("$ ")
        rest = rest[size:]
        shown = []
        while rest and not rest[0].startswith("$ "):
            shown.append(rest.pop(0))
        yield Step(command, "\n".join(shown).strip())


def _command_size(lines: list[str]) -> int:
    """How many lines the command has that begins here: to the end of its text, or of its
    backslashes."""
    end = re.search(r"<<'(\w+)'$", lines[0])
    if end:
        return lines.index(end[1]) + 1
    size = 1
    while lines[size - 1].endswith("\\"):
        size += 1
    return size


def is_like(printed: str, shown: str) -> bool:
    """Whether it is what is shown, where "…" stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def require_tools() -> None:
    """Skips where a tool isn't there; never where all of it must be."""
    there = {
        "curl": shutil.which("curl") is not None,
        "openapi-python-client": importlib.util.find_spec("openapi_python_client") is not None,
    }
    missing = ", ".join(name for name, found in there.items() if not found)
    if missing and os.environ.get("CI", "").lower() not in ("1", "true"):
        pytest.skip(f"{missing}: not installed here")
    assert not missing, f"{missing}: not installed"


@pytest.fixture(scope="module")
def clone() -> Iterator[Clone]:
    require_tools()
    with (
        tempfile.TemporaryDirectory(prefix="run-") as folder,
        # How a first start makes its tables is seen in test_launch.py.
        cloned(Path(folder), with_tables=True) as made,
    ):
        started = made.run()
        yield made
        press_ctrl_c(started)
        made.wait_until_stopped(started)
        assert "Traceback" not in made.output()


def test_the_commands_do_what_is_printed_below_them(clone: Clone) -> None:
    todo = steps(read("docs/quickstart.md"))
    assert len(todo) > 12
    script = "set -u\n" + "\n".join(
        f"{step.command}\necho; echo '{END.format(number)}'" for number, step in enumerate(todo)
    )
    done = subprocess.run(
        ["bash"],
        input=script.replace(PRINTED_SERVER, clone.url),
        cwd=clone.folder,
        env=clone.environment(SERVER=clone.url),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    rest = done.stdout
    for number, step in enumerate(todo):
        printed, found, rest = rest.partition(END.format(number))
        assert found, done.stdout + done.stderr
        if step.shown:
            assert is_like(printed, step.shown), f"{step.command}\n{printed}\n{done.stderr}"
    assert done.returncode == 0, done.stderr
    assert "rror" not in done.stderr, done.stderr


PAGES_AND_FILES = """
import io, os, sys
sys.path.append("docs/client")
from example import AuthenticatedClient, CHAT, NewMemoryRequest, memories_of, memories_remember
from memory_client.api.files import files_upload
from memory_client.models import FileUploadRequest
from memory_client.types import File
with AuthenticatedClient(os.environ["SERVER"], os.environ["TOKEN"]) as client:
    for number in range(5):
        fact = NewMemoryRequest(content=f"Room {number} seats {number}0", whatsapp_chat=CHAT)
        memories_remember.sync(client=client, body=fact)
    for each in memories_of(client, CHAT, limit=2):
        print(each.content)
    file = File(io.BytesIO(b"We open at nine."), "hours.txt", "text/plain")
    made = files_upload.sync(client=client, body=FileUploadRequest(file=file, whatsapp_chat=CHAT))
    print("File:", made.name, made.whatsapp_chat, made.size)
"""


def test_a_generated_client_pages_through_a_list_and_uploads_a_file(clone: Clone) -> None:
    token = clone.manage("create_api_token", "paging").strip()
    done = subprocess.run(
        ["bash", "-c", 'make client && echo "$END" && exec .venv/bin/python -c "$SCRIPT"'],
        cwd=clone.folder,
        env=clone.environment(
            SERVER=clone.url, TOKEN=token, PYTHONPATH="client", SCRIPT=PAGES_AND_FILES, END=END
        ),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = done.stdout.partition(END)[2].split("\n")
    rooms = [line for line in listed if line.startswith("Room")]
    assert rooms == [f"Room {number} seats {number}0" for number in (4, 3, 2, 1, 0)]
    assert "File: hours.txt 15550100789@c.us 16" in listed


def test_the_document_shows_what_each_step_answers() -> None:
    """All but those that set a variable or write a file."""
    for step in steps(read("docs/quickstart.md")):
        quiet = re.match(r"[A-Z]+=\S*(\$\(|http)|cat >|make client", step.command)
        assert bool(step.shown) != bool(quiet), step.command
