"""`manage.py sessions_import`: its report, its options, its exit code."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import Message, MessageEmbedding
from tests.recovery.conftest import Import
from tests.recovery.old_files import OldFolder, message, new_id
from tests.recovery.stored import at, everything, stored

pytestmark = pytest.mark.django_db


def test_a_dry_run_tells_the_same_and_writes_nothing(old: OldFolder, bring_in: Import) -> None:
    documents = [message(number) for number in range(1, 6)]
    old.add(documents, message_ids=[one["message_id"] for one in documents[3:]])
    old.add([message(1), message(1)], last_active=at(5))
    old.write("broken.json", b"{")
    before = everything()
    told = bring_in(dry_run=True)
    assert everything() == before
    done = bring_in()
    assert told.dry_run
    assert {**told.as_dict(), "vectors": 0, "dry_run": 0} == {
        **done.as_dict(),
        "vectors": 0,
        "dry_run": 0,
    }


def test_the_command_prints_a_report(old: OldFolder) -> None:
    session_id = old.add([message(1), message(2)], last_active=at(24 * 30))
    out, errors = io.StringIO(), io.StringIO()
    call_command("sessions_import", str(old.root), "--json", stdout=out, stderr=errors)
    assert "%" not in errors.getvalue(), "no progress bar where there is no terminal"
    document = json.loads(out.getvalue())
    assert document["sessions"] == {"imported": 1, "expired": 1, "already_there": 0, "skipped": 0}
    assert document["messages"]["imported"] == document["vectors"] == 2
    assert len(stored(session_id)) == 2
    out = io.StringIO()
    call_command("sessions_import", str(old.root), stdout=out)
    assert "1 already there" in out.getvalue()


def test_the_command_names_what_was_skipped(old: OldFolder) -> None:
    old.add([message(1)], last_active=at(24 * 30))
    for number in range(60):
        old.write(f"broken-{number:02}.json", b"[]")
    out = io.StringIO()
    with pytest.raises(CommandError, match="60 were skipped"):
        call_command("sessions_import", str(old.root), "--no-vectors", stdout=out)
    shown = out.getvalue()
    assert "broken-00.json: not a JSON object" in shown
    assert "broken-49.json" in shown
    assert "broken-50.json" not in shown
    assert "and 10 more" in shown
    assert Message.objects.count() == 1
    assert not MessageEmbedding.objects.exists()


@pytest.mark.parametrize("partly", [True, False])
def test_it_fails_when_anything_was_skipped(old: OldFolder, partly: bool) -> None:
    if partly:
        old.add([message(1)], last_active=at(24 * 30))
    old.write("broken.json", b"[]")
    with pytest.raises(CommandError, match="1 were skipped") as failed:
        call_command("sessions_import", str(old.root), stdout=io.StringIO())
    assert failed.value.returncode == 1
    assert Message.objects.count() == (1 if partly else 0)


@pytest.mark.parametrize(
    "command",
    [
        ("sessions_import", ""),
        ("session_rebuild", "5f9c1c9e-5a3a-4e0e-9d4f-3c1f6f5f6a10", "--from", ""),
    ],
)
def test_no_folder_is_not_the_current_one(command: tuple[str, ...]) -> None:
    """As of an unset shell variable."""
    with pytest.raises(CommandError, match="a folder is needed"):
        call_command(*command)


def test_the_command_rebuilds_and_tries_out(old: OldFolder) -> None:
    old.add_message(message(1, session_id=new_id()))
    command = ("sessions_import", str(old.root), "--orphans", "rebuild")
    out = io.StringIO()
    call_command(*command, "--dry-run", stdout=out)
    assert out.getvalue().startswith("Nothing was stored")
    assert not Message.objects.exists()
    call_command(*command, stdout=io.StringIO())
    assert Message.objects.count() == 1
