"""``manage.py chat_memory``: exit codes, what it prints, and its JSON."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from sessions_app.models import Chat
from sessions_app.schedules import PLANNED
from sessions_app.tasks import drop_transcript_backups
from sessions_app.transcript_files.transcript_folder import batch_name
from sessions_app.transcripts.export_transcripts import Target, alone_in
from tests.docs.sources import PROJECT
from tests.transcripts.conftest import Batches, run, said, stored
from tests.world import CLIENT

GOOD = b"User: a\nAssistant: b\n"


@pytest.fixture
def folder(db: None, tmp_path: Path) -> Path:
    path = tmp_path / "temp"
    path.mkdir()
    (path / batch_name(1)).write_bytes(GOOD)
    return path


def test_validate_says_that_all_is_well_and_changes_nothing(folder: Path) -> None:
    ran = run("validate", "--dir", folder)
    assert ran.code == 0
    assert "is valid: 1 batch, 2 messages" in ran.out
    assert (folder / batch_name(1)).read_bytes() == GOOD
    report = run("validate", "--dir", folder, "--json").report
    assert (report["valid"], report["files"], report["problems"]) == (True, 1, [])


def test_validate_names_file_line_rule_and_the_way_out(folder: Path) -> None:
    (folder / batch_name(2)).write_bytes(b"User: a\nUser:b\n")
    ran = run("validate", "--dir", folder)
    assert ran.code == 1
    assert "chat_memory_batch_002.txt, line 2: rule 6: One space must follow User:." in ran.errors
    ran = run("validate", "--dir", folder, "--json")
    assert ran.code == 1
    assert {(each["rule"], each["line"]) for each in ran.report["problems"]} == {
        *((2, 2), (3, 2), (4, 2), (6, 2))
    }
    assert all(each["what"] and each["mend"] for each in ran.report["problems"])


def test_validate_of_an_empty_folder_is_a_problem(folder: Path) -> None:
    """File existence: the file was created, with content."""
    (folder / batch_name(1)).write_bytes(b"")
    assert run("validate", "--dir", folder).code == 1
    (folder / batch_name(1)).unlink()
    assert "There is no batch" in run("validate", "--dir", folder).errors


def test_validate_with_a_chat_looks_at_what_is_stored(folder: Path) -> None:
    run("save", "--dir", folder, "--chat", CLIENT)
    (folder / batch_name(5)).write_bytes(GOOD)
    assert run("validate", "--dir", folder).code == 0
    assert "rule" not in run("validate", "--dir", folder, "--chat", CLIENT).errors
    assert run("validate", "--dir", folder, "--chat", CLIENT).code == 1


def test_save_tells_what_it_did(folder: Path) -> None:
    ran = run("save", "--dir", folder, "--chat", CLIENT)
    assert ran.code == 0
    assert "1 batch saved: 2 messages added to session" in ran.out
    assert "Backed up and verified: " in ran.out
    assert list(folder.iterdir()) == []
    assert stored(chat__whatsapp_chat=CLIENT) == said("a", "b")
    assert run("save", "--dir", folder).out.strip().endswith("nothing to save.")


def test_save_refuses_with_1_and_tells_all_problems(folder: Path) -> None:
    (folder / batch_name(1)).write_bytes(b"Assistant: a\n")
    ran = run("save", "--dir", folder)
    assert ran.code == 1
    assert ran.errors.count(batch_name(1)) == 2
    assert "nothing was stored, and the files are where they were" in ran.errors
    report = run("save", "--dir", folder, "--json").report
    assert [each["rule"] for each in report["problems"]] == [1, 5]
    assert report["error"]


def test_status_tells_what_is_there_and_what_a_save_would_do(folder: Path) -> None:
    found = run("status", "--dir", folder, "--json").report
    assert found["folder"]["files"] == 1
    assert found["stored"]["messages"] == 0
    assert found["save"] == {"possible": True, "add": 2, "overlap": 0, "saved_before": 0}
    run("save", "--dir", folder)
    (folder / batch_name(2)).write_bytes(GOOD + b"User: c\nAssistant: d\n")
    found = run("status", "--dir", folder, "--overlap", 2, "--json").report
    assert found["stored"]["last_batch"]["number"] == 1
    assert (found["save"]["add"], found["save"]["overlap"]) == (2, 2)
    (folder / batch_name(4)).write_bytes(GOOD)
    told = run("status", "--dir", folder)
    assert told.code == 0
    assert "A save would refuse" in told.out
    (folder / batch_name(2)).write_bytes(b"User:c\nAssistant: d\n")
    (folder / batch_name(4)).unlink()
    assert "chat_memory_batch_002.txt, line 1: rule 6: " in run("status", "--dir", folder).out


@pytest.mark.parametrize(
    ("arguments", "said_"),
    [
        (("save", "--dir", "nowhere"), "There is no folder nowhere"),
        (("export", "--dir", "nowhere"), "--session or --chat"),
        (("save", "--session", "x"), "is no session's id"),
        (("save", "--session=--"), "session"),
        (("save", "--chat", ""), "write it like 15550100123@c.us"),
        (("save", "--chat", "two words"), "write it like 15550100123@c.us"),
        (("export", "--chat", CLIENT, "--batch-size", "3"), "even number"),
    ],
)
def test_wrong_usage_is_2(db: None, arguments: tuple[str, ...], said_: str) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert said_ in ran.errors


@pytest.mark.parametrize("action", ["validate", "save", "status", "export"])
def test_a_file_instead_of_a_folder_is_told(folder: Path, tmp_path: Path, action: str) -> None:
    run("save", "--dir", folder, "--chat", CLIENT)
    file = tmp_path / "file"
    file.touch()
    ran = run(action, "--dir", file, "--chat", CLIENT)
    assert ran.code == 2
    assert f"{file} is no folder" in ran.errors


def test_what_is_not_there_is_1(folder: Path) -> None:
    nobody = "8c6b1f4e-0000-4000-8000-000000000000"
    assert run("save", "--dir", folder, "--session", nobody).code == 1
    assert run("export", "--dir", folder, "--chat", CLIENT).code == 1


def test_an_export_of_nothing_does_not_claim_to_have_written(folder: Path, tmp_path: Path) -> None:
    Chat.objects.create(whatsapp_chat=CLIENT)
    ran = run("export", "--dir", tmp_path / "out", "--chat", CLIENT)
    assert (ran.code, ran.out) == (1, "")
    assert "There is no message with its answer to export" in ran.errors


@pytest.mark.django_db(transaction=True)
def test_one_who_saves_into_the_same_chat_from_elsewhere_is_told(tmp_path: Path) -> None:
    (tmp_path / batch_name(1)).write_bytes(GOOD)
    inside, done = threading.Event(), threading.Event()

    def work() -> None:
        with alone_in(Target()):
            inside.set()
            done.wait(60)
        connection.close()

    other = threading.Thread(target=work)
    other.start()
    try:
        assert inside.wait(60)
        ran = run("save", "--dir", tmp_path)
        assert ran.code == 1
        assert "Another chat_memory saves into the same chat" in ran.errors
        assert (tmp_path / batch_name(1)).exists()
    finally:
        done.set()
        other.join()
    assert run("save", "--dir", tmp_path).code == 0


@pytest.mark.processes
def test_as_a_program_it_ends_without_a_traceback(tmp_path: Path) -> None:
    for arguments, code in ((["save", "--dir", "nowhere"], 2), (["save", "--dir", ""], 2), ([], 2)):
        ended = subprocess.run(
            [sys.executable, "manage.py", "chat_memory", *arguments],
            cwd=PROJECT,
            env={**os.environ, "DATA_DIR": str(tmp_path / "d"), "LOG_DIR": str(tmp_path / "l")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == code
        assert "Traceback" not in ended.stderr


def test_notes_are_told_beside_the_result(batches: Batches) -> None:
    batches.put_bytes(1, b"User: a\nAssistant: b\nuser: c\n")
    (batches.path / "readme.txt").write_text("x")
    ran = run("validate", "--dir", batches.path)
    assert ran.code == 0
    assert "line 3: this is almost a speaker's line" in ran.errors
    assert "left alone, as these are no batches: readme.txt" in ran.errors


def test_the_clock_drops_old_backups(db: None, settings: Any) -> None:
    root = Path(settings.DATA_DIR) / "transcripts"
    (root / "20200101T000000Z-0123456789ab").mkdir(parents=True)
    assert "sessions_app.tasks.drop_transcript_backups" in {planned.task for planned in PLANNED}
    assert drop_transcript_backups() == 1
    assert not (root / "20200101T000000Z-0123456789ab").exists()


def test_the_clock_drops_texts_that_an_earlier_version_left(db: None, settings: Any) -> None:
    folder = Path(settings.DATA_DIR) / "transcript-texts"
    (folder / "text-old").mkdir(parents=True)
    (folder / "text-old" / "chat_memory_batch_001.txt").write_text("User: a\nAssistant: b\n")
    drop_transcript_backups()
    assert not folder.exists()
