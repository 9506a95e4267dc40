"""Files of messages in a backup: by choice, checked like the tables, and put back whole."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from memoryproject.foundation.integrations.media_storage.storage_choice import FolderStorage
from sessions_app.backup.archive import ArchiveError
from sessions_app.backup.dependencies import archive_access
from sessions_app.models import Chat, MediaFile
from tests.recovery.archives import (
    fails_as_somebody_writes,
    keep_file,
    restore,
    tampered,
    verify,
    with_media,
)
from tests.recovery.contents import wipe
from tests.world import World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_after_migrate")]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
OGG = b"OggS" + bytes(range(256)) * 9


@pytest.fixture
def kept(world: World, settings: Any, tmp_path: Path) -> Iterator[Path]:
    """The folder of two files that came with messages."""
    data = tmp_path / "data"
    settings.DATA_DIR = data
    keep_file(world, "image", PNG)
    keep_file(world, "voice", OGG)
    (data / "media" / ".incoming-x").write_bytes(b"a part of a file")
    yield data / "media"
    wipe()


@pytest.fixture
def archive(kept: Path, tmp_path: Path) -> Path:
    return with_media(tmp_path / "all.zip")


def contents(folder: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in folder.glob("*"))


def restore_files(path: Path, media: Path, **changes: Any) -> int:
    return restore(path, media=FolderStorage(media), **changes).files


def test_the_files_come_back_and_are_seen(archive: Path, tmp_path: Path, settings: Any) -> None:
    new = tmp_path / "new"
    settings.DATA_DIR = new
    assert restore_files(archive, new / "media") == 2
    assert contents(new / "media") == sorted([PNG, OGG])
    for path in (new / "media").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((new / "media").stat().st_mode) == 0o700
    client = Client()
    client.force_login(User.objects.create_superuser("eve", password="password"))
    row = MediaFile.objects.get(content_type="image/png")
    page: Any = client.get(f"/admin/sessions_app/message/{row.message_id}/media/")
    assert b"".join(page) == PNG


def test_they_are_listed_with_their_checksums_and_not_packed_twice(archive: Path) -> None:
    manifest = verify(archive, access=archive_access())
    assert sorted(each.size for each in manifest.media.values()) == sorted([len(PNG), len(OGG)])
    with zipfile.ZipFile(archive) as opened:
        members = [each for each in opened.infolist() if each.filename.startswith("media/")]
        assert {each.compress_type for each in members} == {zipfile.ZIP_STORED}
        assert sorted(opened.read(each) for each in members) == sorted([PNG, OGG])


def test_without_the_option_there_are_none(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plain.zip"
    call_command("backup", str(path), verbosity=0)
    with zipfile.ZipFile(path) as opened:
        assert [name for name in opened.namelist() if name.startswith("media/")] == []
        assert "media" not in json.loads(opened.read("manifest.json"))
    wipe()
    assert restore_files(path, tmp_path / "new") == 0
    assert not (tmp_path / "new").exists()
    assert MediaFile.objects.count() == 2


def test_they_can_be_left_out_of_a_restore(archive: Path, tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / "new"
    call_command("restore", str(archive), "--without-keys", "--without-media")
    assert not (tmp_path / "new" / "media").exists()
    assert Chat.objects.exists()


def test_a_damaged_file_is_found_and_nothing_is_restored(archive: Path, tmp_path: Path) -> None:
    def damage(files: dict[str, bytes]) -> None:
        name = next(name for name in files if name.startswith("media/"))
        files[name] = files[name][:-1] + b"!"

    other = tampered(archive, damage)
    with pytest.raises(CommandError, match="another checksum"):
        call_command("backup", str(other), "--verify")
    with pytest.raises(ArchiveError, match="another checksum"):
        restore_files(other, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert not Chat.objects.exists()


def test_a_name_that_is_no_id_is_refused(archive: Path, tmp_path: Path, settings: Any) -> None:
    def rename(files: dict[str, bytes]) -> None:
        manifest = json.loads(files["manifest.json"])
        old = next(iter(manifest["media"]))
        manifest["media"]["../escaped"] = manifest["media"].pop(old)
        files["media/../escaped"] = files.pop(f"media/{old}")
        files["manifest.json"] = json.dumps(manifest).encode()

    settings.DATA_DIR = tmp_path / "new"
    with pytest.raises(CommandError, match="manifest is damaged"):
        call_command("restore", str(tampered(archive, rename)), "--trust", "--without-keys")
    assert not (tmp_path / "new").exists()


def test_a_restore_that_fails_leaves_no_files(archive: Path, tmp_path: Path, world: World) -> None:
    fails_as_somebody_writes(archive, world, media=FolderStorage(tmp_path / "new"))
    assert contents(tmp_path / "new") == []


def test_a_file_that_is_forgotten_meanwhile_is_left_out(kept: Path, tmp_path: Path) -> None:
    place = kept / str(MediaFile.objects.latest("created_at").pk)
    place.unlink()
    path = with_media(tmp_path / "all.zip")
    assert len(verify(path, access=archive_access()).media) == 1
    assert restore_files(path, tmp_path / "new") == 1
