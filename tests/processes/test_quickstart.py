"""docs/quickstart.md: its commands as they are printed, in their order, in a fresh clone with
`make run` beside it, and what they print."""

from __future__ import annotations

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
    is_there = shutil.which("curl") is not None
    if not is_there and os.environ.get("CI", "").lower() not in ("1", "true"):
        pytest.skip("curl: not installed here")
    assert is_there, "curl: not installed"


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


def test_the_document_shows_what_each_step_answers() -> None:
    """All but those that set a variable or write a file."""
    for step in steps(read("docs/quickstart.md")):
        quiet = re.match(r"[A-Z]+=\S*(\$\(|http)|cat >", step.command)
        assert bool(step.shown) != bool(quiet), step.command
