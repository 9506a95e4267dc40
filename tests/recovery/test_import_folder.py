"""What is read of a folder: nothing outside it, and only files."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sessions_app.legacy_import.session_folder import FolderError
from sessions_app.models import Message
from tests.recovery.conftest import Import, is_in
from tests.recovery.old_files import NOW, OldFolder, message

pytestmark = pytest.mark.django_db


def link(path: Path, target: Path) -> None:
    os.symlink(target, path)


def test_links_out_of_it(old: OldFolder, bring_in: Import, good: str, tmp_path: Path) -> None:
    outside = OldFolder(tmp_path / "elsewhere")
    stolen = outside.add(last_active=NOW.isoformat())
    link(old.root / f"{stolen}.json", outside.root / f"{stolen}.json")
    listed = message(1)
    session_id = old.add(message_ids=[listed["message_id"]])
    link(
        old.root / "messages" / f"{listed['message_id']}.json",
        outside.add_message({**listed, "session_id": session_id}),
    )
    report = bring_in()
    assert is_in(good)
    assert not is_in(stolen)
    assert not Message.objects.filter(session_id=session_id).exists()
    assert [one["reason"] for one in report.skipped] == ["a link out of the folder"] * 2


@pytest.mark.parametrize("name", ["messages", "expired"])
def test_a_folder_that_is_a_link_out_is_refused(
    old: OldFolder, bring_in: Import, good: str, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    if (old.root / name).exists():
        (old.root / name).rename(old.root / "moved")
    link(old.root / name, outside)
    with pytest.raises(FolderError, match="link out of the folder"):
        bring_in()
    assert not is_in(good)


def test_links_within_the_folder_are_followed(old: OldFolder, bring_in: Import, good: str) -> None:
    inside = old.add()
    (old.root / f"{inside}.json").rename(old.root / "kept.txt")
    link(old.root / f"{inside}.json", old.root / "kept.txt")
    assert not bring_in().skipped
    assert is_in(inside)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    link(path, path)


@pytest.mark.parametrize("make", [make_pipe, Path.mkdir, make_loop])
def test_what_is_no_file_is_skipped(
    old: OldFolder, bring_in: Import, good: str, make: Callable[[Path], None]
) -> None:
    make(old.root / "odd.json")
    make(old.root / "messages" / "odd.json")
    report = bring_in()
    assert is_in(good)
    assert len(report.skipped) == 2


def test_names_that_are_no_text_can_be_told(old: OldFolder, bring_in: Import, good: str) -> None:
    for folder in (b"", b"messages/"):
        name = os.fsencode(old.root) + b"/" + folder + b"\xff\n.json"
        with open(name, "wb") as file:
            file.write(b"{}")
    report = bring_in()
    assert is_in(good)
    assert len(report.skipped) == 2
    json.dumps(report.as_dict()).encode()
    assert all(one["file"].isprintable() for one in report.skipped)


def refused(*arguments: str) -> CommandError:
    with pytest.raises(CommandError) as failed:
        call_command("sessions_import", *arguments, stdout=io.StringIO())
    return failed.value


def test_a_folder_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    error = refused(str(tmp_path / "nowhere"))
    assert (error.returncode, "is not there" in str(error)) == (2, True)
    (tmp_path / "file").write_text("{}")
    error = refused(str(tmp_path / "file"))
    assert (error.returncode, "is not a folder" in str(error)) == (2, True)
    (tmp_path / "empty").mkdir()
    assert refused(str(tmp_path / "empty")).returncode == 1
