"""The tree's own: modes, links, files of other programs, and what a crash leaves."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memories_app.memory_document_format.strict_json import MemoryDocumentStoreError
from memories_app.memory_documents.tree_store import TreeStore
from tests.memory_documents.conftest import Place, run
from tests.unit.memory_documents.examples import CONTENTS, document

# What somebody writes who has read the format's description and nothing else.
READER = """
import glob, json, os, sys
for path in sorted(glob.glob(os.path.join(sys.argv[1], "**", "*.json"), recursive=True)):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    meta, content = document["meta"], document["content"]
    name = meta["summary"] + ".json"
    if meta["category"] == "context":
        name = meta["created"][:10] + "-" + name
    assert meta["created"].endswith("Z") and os.path.basename(path) == name, path
    assert os.path.basename(os.path.dirname(path)) == meta["category"], path
    print(meta["category"], meta["summary"], json.dumps(content, sort_keys=True))
"""


@pytest.fixture
def tree(make_place: Any) -> Place:
    place: Place = make_place("tree")
    return place


def root_of(tree: Place) -> Path:
    assert tree.root is not None
    return tree.root


def written(root: Path, path: str, value: Any) -> Path:
    """A file as another program writes it."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    file.write_bytes(raw)
    return file


def test_a_reader_that_knows_only_the_format_reads_what_is_written(tree: Place) -> None:
    expected = []
    for category, content in CONTENTS.items():
        tree.save(category, "feature-auth", **content)
        expected.append(f"{category} feature-auth {json.dumps(content, sort_keys=True)}")
    tree.save("context", "שלום", notes="שלום")
    expected.append('context שלום {"notes": "\\u05e9\\u05dc\\u05d5\\u05dd"}')
    tree.save("handoffs", "task-42", task="t")
    tree.run("archive", "--category", "handoffs", "--identifier", "task-42")
    expected.append('handoffs task-42 {"task": "t"}')
    read = subprocess.run(
        [sys.executable, "-c", READER, str(tree.root)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert sorted(read.stdout.splitlines()) == sorted(expected)


def test_the_tree_is_laid_out_as_the_format_has_it_with_its_modes(tree: Place) -> None:
    tree.save("context", "feature-auth")
    root = root_of(tree)
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    categories = ["context", "decisions", "interfaces", "handoffs"]
    assert found == sorted(
        [
            *categories,
            "archive",
            *(f"archive/{category}" for category in categories),
            "context/2025-11-25-feature-auth.json",
        ]
    )
    for path in [root, *root.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_nobody_else_can_look_into_what_is_made_above_the_root(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        TreeStore(tmp_path / "project/.claude/memory").save(
            category="context", identifier="x", content={}
        )
    finally:
        os.umask(before)
    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_folders_that_are_there_keep_their_modes(tree: Place) -> None:
    root = root_of(tree)
    (root / "context").mkdir(parents=True)
    root.chmod(0o755)
    (root / "context").chmod(0o750)
    tree.save("context", "x")
    assert stat.S_IMODE(root.stat().st_mode) == 0o755
    assert stat.S_IMODE((root / "context").stat().st_mode) == 0o750


def test_what_another_program_wrote_is_read_and_kept_as_it_is(tree: Place) -> None:
    root = root_of(tree)
    value = document("context", content={"notes": "x", "mood": [1]}, version=3)
    file = written(root, "context/2025-11-25-feature-auth.json", value)
    raw = file.read_bytes()
    arguments = ["--category", "context", "--identifier", "feature-auth"]
    loaded = tree.run("load", *arguments)
    assert loaded.out.encode().rstrip() == raw
    tree.run("archive", *arguments)
    assert (root / "archive/context/2025-11-25-feature-auth.json").read_bytes() == raw
    written(root, "interfaces/auth.json", document("interfaces", later=1))
    tree.save("interfaces", "auth", module="b")
    updated = json.loads((root / "interfaces/auth.json").read_text())
    assert (updated["later"], updated["content"]) == (1, {"module": "b"})
    written(root, "context/undated.json", document("context"))
    assert tree.run("load", "--category", "context", "--identifier", "undated").code == 0


def test_what_is_no_document_of_the_tree_is_passed_over(tree: Place) -> None:
    root = root_of(tree)
    written(root, "context/README.md", b"# hello")
    written(root, "context/.hidden.json", b"x")
    written(root, "context/.saving", b"x")
    written(root, "context/deeper/x.json", b"x")
    written(root, "notes.json", b"x")
    listed = tree.run("list")
    assert (listed.code, listed.out, listed.err) == (0, "", "")


BROKEN = {
    "context/empty.json": b"",
    "context/half.json": b'{"meta": {"created"',
    "context/binary.json": bytes(range(256)),
    "context/deep.json": b"[" * 100_000,
    "context/large.json": b" " * 2_000_000,
    "decisions/offset.json": document("decisions", meta={"created": "2025-11-25T10:30:00+00:00"}),
    "decisions/moved.json": document("context"),
    "decisions/status.json": document("decisions", content={"status": "open", "decision": 5}),
    "handoffs/con.json": document("handoffs"),
    "handoffs/a\x1b[31mred.json": document("handoffs"),
    "handoffs/a\u202eb.json": document("handoffs"),
}


def test_broken_files_are_told_with_all_that_is_wrong_and_left_alone(tree: Place) -> None:
    root = root_of(tree)
    files = [written(root, path, value) for path, value in BROKEN.items()]
    before = [file.read_bytes() for file in files]
    tree.save("decisions", "good", decision="x")

    listed = tree.run("list")
    assert (listed.code, len(listed.out.splitlines())) == (0, 1)
    told = listed.err.splitlines()
    assert len(told) == len(BROKEN)
    assert all(line.startswith("Left alone, it can't be read: ") for line in told)
    assert all(line.isprintable() for line in told), "nothing that a terminal acts on"
    assert any("content.decision: " in line and "content.status: " in line for line in told)
    cleaned = tree.run("cleanup", "--category", "context", "--older-than", "0d")
    assert (cleaned.code, len(cleaned.err.splitlines())) == (0, 5)
    for name in ("empty", "half", "binary", "deep", "large"):
        arguments = ["--category", "context", "--identifier", name]
        assert tree.run("load", *arguments).code == 1
        assert tree.run("archive", *arguments).code == 1
    refused = tree.run(
        "save", "--category", "decisions", "--identifier", "moved", "--content", "{}"
    )
    assert (refused.code, refused.out) == (1, "")
    assert "meta.category: is context, but" in refused.err
    assert [file.read_bytes() for file in files] == before


def test_a_name_that_is_not_utf_8_is_told(tree: Place) -> None:
    tree.save("context", "good")
    folder = os.fsencode(root_of(tree) / "context")
    with open(os.path.join(folder, b"\xff\xfe.json"), "wb") as file:
        file.write(json.dumps(document("context")).encode())
    listed = tree.run("list", "--json")
    assert len(listed.json) == 1
    assert r"context/\udcff\udcfe.json" in listed.err


def test_links_pipes_and_folders_are_never_followed(tree: Place, tmp_path: Path) -> None:
    tree.save("handoffs", "good", task="t")
    folder = root_of(tree) / "handoffs"
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(document("handoffs", content={"task": "secret"})))
    (folder / "link.json").symlink_to(secret)
    (folder / "dangling.json").symlink_to(tmp_path / "nowhere.json")
    (folder / "folder.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    listed = tree.run("list")
    assert len(listed.out.splitlines()) == 1
    assert len(listed.err.splitlines()) == 4
    for name in ("link", "dangling", "folder", "pipe"):
        arguments = ["--category", "handoffs", "--identifier", name]
        loaded = tree.run("load", *arguments)
        assert (loaded.code, loaded.out) == (1, "")
        assert tree.run("save", *arguments, "--content", '{"task": "new"}').code == 1
        assert tree.run("archive", *arguments).code == 1
    assert "secret" in secret.read_text()
    assert not (tmp_path / "nowhere.json").exists()
    assert (folder / "link.json").is_symlink()


@pytest.mark.parametrize("place", ["context", "archive", "archive/context"])
def test_folders_that_are_links_are_refused(tree: Place, tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root = root_of(tree)
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).symlink_to(elsewhere)
    content = '{"notes": "x"}'
    saved = tree.run("save", "--category", "context", "--identifier", "x", "--content", content)
    archived = tree.run("archive", "--category", "context", "--identifier", "x")
    assert archived.code == 1
    assert "a symbolic link" in (saved.err or archived.err)
    assert list(elsewhere.rglob("*")) == []


def test_the_root_itself_may_be_a_link(tree: Place, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    root = root_of(tree)
    root.parent.mkdir(parents=True, exist_ok=True)
    root.symlink_to(real)
    tree.save("context", "x")
    assert (real / "context/2025-11-25-x.json").is_file()


@pytest.mark.parametrize("action", ["list", "load", "cleanup", "archive", "query"])
def test_a_root_that_is_not_there_is_told_and_not_made(tree: Place, action: str) -> None:
    more = {
        "list": [],
        "load": ["--category", "context", "--identifier", "x"],
        "archive": ["--category", "context", "--identifier", "x"],
        "cleanup": ["--category", "context", "--older-than", "7d"],
        "query": ["--pattern", "*"],
    }
    ran = tree.run(action, *more[action])
    assert (ran.code, ran.out) == (1, "")
    assert "There is no folder" in ran.err
    assert not root_of(tree).exists()


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    where = ["--root", str(tmp_path / "file")]
    assert "is no folder" in run("list", *where).err
    told = run("save", *where, "--category", "context", "--identifier", "x", "--content", "{}")
    assert told.code == 1
    assert "is no folder" in told.err


def test_what_a_killed_writer_left_is_no_document_and_goes_with_the_next_save(tree: Place) -> None:
    tree.save("context", "x", notes="before")
    left = root_of(tree) / "context" / ".saving"
    left.write_text('{"half')
    assert tree.paths() == ["context/2025-11-25-x.json"]
    tree.save("context", "x", notes="after")
    assert not left.exists()
    assert [path.name for path in left.parent.iterdir()] == ["2025-11-25-x.json"]


def test_a_save_that_fails_leaves_what_was_there(tree: Place) -> None:
    """A folder stands where the new text is written beside the old one, as a full disk would."""
    tree.save("context", "x", notes="before")
    (root_of(tree) / "context" / ".saving").mkdir()
    refused = tree.run(
        "save", "--category", "context", "--identifier", "2025-11-25-x",
        "--content", '{"notes": "after"}',
    )  # fmt: skip
    assert refused.code == 1
    assert "can't be written to" in refused.err
    assert "before" in tree.run("load", "--category", "context", "--identifier", "x").out


def test_who_finds_the_tree_locked_for_too_long_is_told(tree: Place) -> None:
    tree.save("context", "x")
    impatient = TreeStore(root_of(tree), lock_seconds=0.05)
    holder = os.open(root_of(tree), os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(MemoryDocumentStoreError, match="another program"):
            impatient.save(category="context", identifier="x", content={})
        assert len(list(impatient.walk())) == 1, "reading waits for nobody"
    finally:
        os.close(holder)
    impatient.save(category="context", identifier="x", content={})
