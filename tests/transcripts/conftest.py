"""A folder of batches, and the command over it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from sessions_app.inbound.take_message import IntakeRules
from sessions_app.models import Message
from sessions_app.transcript_files.backups import Backups
from sessions_app.transcript_files.parse_transcript import Problem, RefusedError
from sessions_app.transcript_files.transcript_folder import BatchFolder, batch_name
from sessions_app.transcripts.export_transcripts import Target
from sessions_app.transcripts.save import Saved, SaveDependencies, batches_save
from tests.transcripts.texts import write

Said = tuple[str, str]


def said(*contents: str) -> list[Said]:
    """Messages of a user and the assistant by turns."""
    return [(("user", "assistant")[place % 2], text) for place, text in enumerate(contents)]


@dataclass
class Batches:
    """The folder, and where its backups go."""

    path: Path
    dependencies: SaveDependencies
    target: Target = field(default_factory=Target)

    @property
    def folder(self) -> BatchFolder:
        return BatchFolder(self.path)

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir())

    def put(self, number: int, *contents: str) -> Path:
        return self.put_bytes(number, write(said(*contents)))

    def put_bytes(self, number: int, data: bytes) -> Path:
        path = self.path / batch_name(number)
        path.write_bytes(data)
        return path

    def save(self, **changes: Any) -> Saved:
        dependencies = replace(self.dependencies, **changes.pop("dependencies", {}))
        return batches_save(
            **{
                "folder": self.folder,
                "target": self.target,
                "dependencies": dependencies,
                **changes,
            }
        )

    def refused(self, **changes: Any) -> list[Problem]:
        """The problems for which it is refused, after which nothing may have changed."""
        before = stored(), self.names, self.backed_up()
        with pytest.raises(RefusedError) as error:
            self.save(**changes)
        assert (stored(), self.names, self.backed_up()) == before
        return list(error.value.problems)

    def refused_for(self, **changes: Any) -> Problem:
        """The one problem of the refusal."""
        (problem,) = self.refused(**changes)
        return problem

    def backed_up(self) -> dict[str, bytes]:
        """The files of all backups, by name."""
        root = self.dependencies.backups.root
        return {path.name: path.read_bytes() for path in sorted(root.glob("*/*.txt"))}


def stored(**where: Any) -> list[Said]:
    """All messages, in their order."""
    messages = Message.objects.filter(**where).order_by("session__created_at", "order_num")
    return list(messages.values_list("role", "content"))


@pytest.fixture
def batches(db: None, tmp_path: Path, rules: IntakeRules) -> Batches:
    path = tmp_path / "temp"
    path.mkdir()
    backups = Backups(tmp_path / "backups")
    return Batches(path, SaveDependencies(rules=rules, backups=backups, keep=timedelta(days=30)))


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    code: int
    out: str
    errors: str

    @property
    def report(self) -> Any:
        return json.loads(self.out)


def run(action: str, *arguments: object) -> Ran:
    """``manage.py chat_memory …``, as its exit code and outputs."""
    out, errors = io.StringIO(), io.StringIO()
    try:
        call_command("chat_memory", action, *map(str, arguments), stdout=out, stderr=errors)
    except CommandError as error:
        errors.write(f"CommandError: {error}")
        return Ran(error.returncode, out.getvalue(), errors.getvalue())
    return Ran(0, out.getvalue(), errors.getvalue())
