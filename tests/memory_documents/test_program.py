"""The command as a program: exit codes, standard input, and several of them at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import load_command_class

from tests.memory_documents.conftest import run

PROJECT = Path(__file__).resolve().parents[2]


def command(root: Path, *arguments: str) -> list[str]:
    action, *rest = arguments
    return [sys.executable, "manage.py", "manage_memory", action, "--root", str(root), *rest]


def program(root: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """With a database out of reach: the tree needs none."""
    return subprocess.run(
        command(root, *arguments),
        cwd=PROJECT,
        env={**os.environ, "DATABASE_URL": "postgresql://user:x@127.0.0.1:1/none"},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def exit_code(*arguments: str) -> int:
    """How the command ends when manage.py runs it. The tests allow it no database."""
    try:
        load_command_class("memories_app", "manage_memory").run_from_argv(
            ["manage.py", "manage_memory", *arguments]
        )
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def save(root: Path, category: str, identifier: str, content: str = "{}") -> None:
    where = ["--category", category, "--identifier", identifier]
    ran = run("save", *where, "--content", content, "--root", str(root))
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["save", "--category", "context", "--identifier", "x", "--content", "{}"], 0),
        (["save", "--category", "context", "--identifier", "x", "--content", "{"], 1),
        (["load", "--category", "context", "--identifier", "x"], 1),
        (["list", "--since", "7x"], 2),
        (["cleanup", "--category", "context", "--older-than", "soon"], 2),
    ],
)
def test_exit_codes(
    tmp_path: Path, arguments: list[str], code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*arguments, "--root", str(tmp_path / "memory")) == code
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    assert bool(out) is (code == 0)


def test_options_may_stand_before_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = str(tmp_path / "memory")
    save = ["save", "--category", "context", "--identifier", "x", "--content", "{}"]
    for arguments in (["--root", root, "--json", *save], ["--json", *save, "--root", root]):
        assert exit_code(*arguments) == 0
        assert json.loads(capfd.readouterr().out)["category"] == "context"
    assert len(list(Path(root).glob("context/*.json"))) == 1


@pytest.mark.processes
def test_a_document_is_printed_as_stored_on_any_terminal(tmp_path: Path) -> None:
    save(tmp_path, "decisions", "שלום", '{"rationale": "שלום 🙂 é"}')
    ran = subprocess.run(
        command(tmp_path, "load", "--category", "decisions", "--identifier", "שלום"),
        cwd=PROJECT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert ran.stdout == (tmp_path / "decisions/שלום.json").read_bytes()
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.processes
def test_content_comes_from_standard_input_as_bytes(tmp_path: Path) -> None:
    where = ["--category", "context", "--identifier", "x"]
    saved = program(tmp_path, "save", *where, "--content", "-", given='{"notes": "שלום"}')
    assert saved.returncode == 0, saved.stderr
    loaded = run("load", *where, "--root", str(tmp_path))
    assert loaded.json["content"] == {"notes": "שלום"}
    too_large = program(tmp_path, "save", *where, "--content", "-", given=" " * 1_100_000)
    assert too_large.returncode == 1
    assert "content: is larger than" in too_large.stderr
    assert "Traceback" not in too_large.stderr


@pytest.mark.processes
def test_who_reads_only_the_first_line_of_a_list_is_no_error(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(tmp_path, "context", name)
    listing = subprocess.Popen(
        command(tmp_path, "list"), cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert listing.stdout is not None
    assert listing.stderr is not None
    listing.stdout.close()
    told = listing.stderr.read()
    listing.stderr.close()
    assert listing.wait() == 0
    assert b"Traceback" not in told


@pytest.mark.processes
def test_several_programs_on_one_tree_lose_nothing(tmp_path: Path) -> None:
    """Each completes a handoff of the same name a few times: each one is in the archive."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.memory_documents.completer", str(tmp_path), str(number)],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    ended = [(*process.communicate("\n", timeout=120), process.returncode) for process in running]
    assert [code for *_, code in ended] == [0] * 4, [error for _, error, _ in ended]
    files = sorted((tmp_path / "archive/handoffs").iterdir())
    tasks = [json.loads(file.read_text())["content"]["task"] for file in files]
    assert sorted(tasks) == sorted(f"{number}-{turn}" for number in range(4) for turn in range(25))
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path not in files]
    assert left == []
