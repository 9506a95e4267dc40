"""Both stores, and the command on each of them, for one suite of tests."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memories_app.memory_documents.database_store import DatabaseStore
from memories_app.memory_documents.store import MemoryDocumentStore
from memories_app.memory_documents.tree_store import TreeStore
from memoryproject.foundation.audit.audit_events import COMMAND_LINE

NOON = datetime(2025, 11, 25, 12, 0, tzinfo=timezone.utc)


@dataclass
class Ran:
    """What the command printed, and its exit code."""

    out: str
    err: str
    code: int

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: str) -> Ran:
    """The command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("manage_memory", *arguments, stdout=out, stderr=err)
    except CommandError as error:
        return Ran(out.getvalue(), f"{err.getvalue()}{error}", error.returncode)
    return Ran(out.getvalue(), err.getvalue(), 0)


@dataclass
class Place:
    """A store of one kind. ``now`` is its clock; the command has the real one."""

    name: str
    root: Path | None
    now: datetime = NOON
    store: MemoryDocumentStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = self.again()

    def again(self) -> MemoryDocumentStore:
        """Another one on the same documents."""
        if self.root is None:
            return DatabaseStore(actor=COMMAND_LINE, now=lambda: self.now)
        return TreeStore(self.root, now=lambda: self.now)

    def run(self, action: str, *arguments: str) -> Ran:
        """The command on this store."""
        where = [] if self.root is None else ["--root", str(self.root)]
        return run(action, *where, *arguments)

    def save(self, category: str, identifier: str, days_ago: float = 0, **content: Any) -> str:
        """Save a document some days before now; returns its name."""
        now, self.now = self.now, self.now - timedelta(days=days_ago)
        saved = self.store.save(category=category, identifier=identifier, content=content)
        self.now = now
        return saved.key.name

    def paths(self, *, archived: bool = False) -> list[str]:
        """Where all documents are, as the command lists them."""
        flags = ["--archived"] if archived else []
        listed = self.run("list", "--json", *flags)
        assert (listed.code, listed.err) == (0, "")
        return [each["path"] for each in listed.json]


@pytest.fixture
def make_place(tmp_path: Path) -> Callable[[str], Place]:
    def make(name: str) -> Place:
        return Place(name, None if name == "database" else tmp_path / name / "memory")

    return make


@pytest.fixture(params=["database", "tree"])
def place(request: pytest.FixtureRequest, db: None, make_place: Callable[[str], Place]) -> Place:
    return make_place(request.param)


@pytest.fixture
def database(db: None, make_place: Callable[[str], Place]) -> Place:
    return make_place("database")
