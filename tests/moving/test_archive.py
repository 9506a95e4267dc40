"""The archive: out by the command and by the staff's page, and in again elsewhere."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat, MediaFile, Message
from sessions_app.moving.presentation import EXPORT_RIGHTS, RIGHTS
from tests.dashboard.staff import staff_with
from tests.moving.test_import_from import ANDROID, PNG, moved, refused, said, zipped
from tests.world import CLIENT, OTHER_CLIENT, World, remember

pytestmark = pytest.mark.django_db
PAGE = "/admin/moving/"


@pytest.fixture(autouse=True)
def memory_on(settings: Any, tmp_path: Path) -> None:
    settings.ENABLE_MEMORY_SYSTEM = True
    settings.DATA_DIR = tmp_path / "data"


@pytest.fixture
def page() -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("admin", password="a-password"))
    return browser


def furnish(world: World, tmp_path: Path) -> None:
    """Two chats with messages and memories, and a file in the first."""
    world.say(CLIENT, "My number is +1 555 010 0999")
    world.remember(CLIENT, "Noa is allergic to sesame")
    world.remember(OTHER_CLIENT, "Likes rye")
    text = "1/2/26, 8:00 AM - Dana: A.png (file attached)\n1/2/26, 8:01 AM - Shop: Nice\n"
    files = {"WhatsApp Chat with Dana.txt": text.encode(), "A.png": PNG}
    moved("whatsapp", zipped(tmp_path, "in.zip", **files), "--chat", CLIENT)


def written(tmp_path: Path, *options: str) -> Path:
    path = tmp_path / "archive.zip"
    call_command("export_to", str(path), *options, stdout=StringIO())
    return path


def lines(path: Path | BytesIO, name: str) -> list[dict[str, Any]]:
    with zipfile.ZipFile(path) as archive:
        return [json.loads(line) for line in archive.read(name).splitlines()]


def everything() -> tuple[Any, ...]:
    rows = Message.objects.order_by("chat__whatsapp_chat", "timestamp", "order_num")
    fields = ("chat__whatsapp_chat", "role", "kind", "content", "timestamp")
    memories = Memory.objects.order_by("content")
    files = MediaFile.objects.values_list("state", "sha256", "content_type")
    return (
        list(rows.values_list(*fields)),
        list(memories.values_list("memory_id", "content", "visibility", "created_at")),
        list(files),
    )


def test_an_archive_read_elsewhere_gives_the_same(world: World, tmp_path: Path) -> None:
    furnish(world, tmp_path)
    before = everything()
    path = written(tmp_path, "--media")
    # Where it came from nothing is doubled.
    again = moved("archive", path)
    assert (again["messages"], again["memories"], again["files"]) == (0, 0, 0)
    assert everything() == before
    Memory.objects.all().delete()
    MediaFile.objects.all().delete()
    Chat.objects.all().delete()
    report = moved("archive", path)
    assert (report["memories"], report["files"], report["bad"]) == (2, 1, 0)
    assert everything() == before
    assert moved("archive", path)["there"] == report["messages"] + 2


def test_what_was_forgotten_for_everyone_stays_so(world: World, tmp_path: Path) -> None:
    known = remember(world, "Closed on Mondays")
    remember(world, "Open on Sundays")
    path = written(tmp_path)
    world.forget("memory", known.pk)
    Memory.objects.all().delete()
    report = moved("archive", path)
    assert (report["memories"], report["skipped"]) == (1, 1)
    assert report["notes"][0]["why"] == "it was forgotten here"
    assert Memory.objects.get().content == "Open on Sundays"


def test_many_memories_take_few_statements(world: World, tmp_path: Path) -> None:
    def statements(number: int) -> int:
        facts = [{"id": f"{number}-{one}", "memory": f"Has {number}{one} keys", "user_id": CLIENT}
                 for one in range(number)]  # fmt: skip
        path = tmp_path / "mem0.json"
        path.write_text(json.dumps(facts))
        with CaptureQueriesContext(connection) as found:
            assert moved("mem0", path)["memories"] == number
        return len([one for one in found if "tombstone" in one["sql"].lower()])

    assert statements(5) == statements(20)


def test_an_archive_says_what_it_holds(world: World, tmp_path: Path) -> None:
    furnish(world, tmp_path)
    path = written(tmp_path, "--chat", CLIENT)
    with zipfile.ZipFile(path) as archive:
        assert not [name for name in archive.namelist() if name.startswith("media/")]
        readme = archive.read("README.md").decode()
        manifest = json.loads(archive.read("manifest.json"))
    assert all(name in readme for name in lines(path, "messages.ndjson")[0])
    assert (manifest["format"], manifest["chats"], manifest["memories"]) == ("memory-archive", 1, 1)
    assert {line["whatsapp_chat"] for line in lines(path, "messages.ndjson")} == {CLIENT}
    assert path.stat().st_mode & 0o077 == 0
    assert AuditEvent.objects.filter(action="export", object_type="chat").exists()


def test_a_redacted_archive_is_for_readers(world: World, tmp_path: Path) -> None:
    furnish(world, tmp_path)
    path = written(tmp_path, "--media", "--redact")
    assert "555 010 0999" not in json.dumps(lines(path, "messages.ndjson"))
    with zipfile.ZipFile(path) as archive:
        assert not [name for name in archive.namelist() if name.startswith("media/")]
    assert "redacted" in refused("archive", path)


def test_an_export_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "archive.zip").write_bytes(b"older")
    with pytest.raises(CommandError, match="There is no chat"):
        written(tmp_path, "--chat", CLIENT)
    with pytest.raises(CommandError, match="can't be written"):
        call_command("export_to", str(tmp_path / "no" / "folder.zip"), stdout=StringIO())
    with pytest.raises(CommandError, match="is not a file"):
        call_command("export_to", str(tmp_path), stdout=StringIO())
    assert [each.name for each in tmp_path.glob("*zip*")] == ["archive.zip"]
    assert (tmp_path / "archive.zip").read_bytes() == b"older"


def test_staff_preview_a_file_and_move_it_in(page: Client) -> None:
    def posted(do: str, **changes: str) -> Any:
        file = SimpleUploadedFile("WhatsApp Chat with Dana.txt", ANDROID.encode())
        given = {"kind": "whatsapp", "whatsapp_chat": CLIENT, "business": "", **changes}
        return page.post(PAGE, {**given, "file": file, "do": do})

    shown = posted("preview")
    assert b"Do you deliver on Friday?" in shown.content
    assert not Chat.objects.exists()
    wrong = posted("store", kind="zep")
    assert (wrong.status_code, b"use the kind whatsapp" in wrong.content) == (400, True)
    assert b"--business" not in posted("store", whatsapp_chat="nonsense").content
    assert b'id="messages">7<' in posted("store").content
    assert len(said()) == 7
    assert AuditEvent.objects.get(action="move.in").actor_kind == "staff"


def test_staff_download_an_archive(page: Client, world: World, tmp_path: Path) -> None:
    furnish(world, tmp_path)
    number = f" +{OTHER_CLIENT[0]} {OTHER_CLIENT[1:4]}-{OTHER_CLIENT[4:].partition('@')[0]}"
    given = {"do": "export", "whatsapp_chat": number, "with_files": "on"}
    answer: Any = page.post(PAGE, given)
    assert answer["Content-Disposition"] == 'attachment; filename="archive.zip"'
    found = lines(BytesIO(b"".join(answer)), "memories.ndjson")
    assert [line["content"] for line in found] == ["Likes rye"]
    assert page.post(PAGE, {"do": "export", "whatsapp_chat": "15550100777"}).status_code == 400


@pytest.mark.parametrize("lacking", EXPORT_RIGHTS)
def test_who_may_not_read_all_of_it_exports_nothing(world: World, lacking: str) -> None:
    rights = {*RIGHTS, *EXPORT_RIGHTS} - {lacking}
    staff = staff_with(*rights)
    assert b'value="export"' not in staff.get(PAGE).content
    assert staff.post(PAGE, {"do": "export", "whatsapp_chat": ""}).status_code == 403
