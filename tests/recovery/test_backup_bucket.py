"""Files of messages that lie in a bucket: backed up from it, and put back into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.backup.dependencies import archive_access
from sessions_app.backup.restore_checks import RestoreError
from sessions_app.management.commands.restore import backup_restore
from sessions_app.media.dependencies import build_media_dependencies, media_request
from sessions_app.media.facade import media_fetch
from sessions_app.models import Chat, MediaFile
from tests.loopback.s3_server import S3Server
from tests.recovery.archives import no_keys, verify
from tests.recovery.contents import wipe
from tests.world import CLIENT, World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_after_migrate")]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


@pytest.fixture
def bucket(world: World, settings: Any, tmp_path: Path) -> Iterator[S3Server]:
    """A bucket with the file of a message."""
    settings.DATA_DIR = tmp_path / "data"
    with S3Server() as server:
        settings.MEDIA_STORAGE = f"s3://{server.bucket}"
        settings.MEDIA_S3_ENDPOINT_URL = server.url
        settings.MEDIA_S3_REGION = server.region
        settings.MEDIA_S3_ACCESS_KEY_ID = server.key_id
        settings.MEDIA_S3_SECRET_ACCESS_KEY = server.secret
        world.with_rules(fetch_media=media_request)
        world.provider.files["image"] = PNG
        world.say(CLIENT, "Look", kind="image", media=Media(media_id="image"))
        dependencies = replace(build_media_dependencies(), providers={"cloud": world.provider})
        row = MediaFile.objects.get()
        assert media_fetch(media_id=row.pk, dependencies=dependencies) == "stored"
        yield server
        wipe()


@pytest.fixture
def archive(bucket: S3Server, tmp_path: Path) -> Path:
    """A backup with the files; the database is empty."""
    path = tmp_path / "all.zip"
    call_command("backup", str(path), "--media", verbosity=0)
    wipe()
    return path


def test_the_objects_come_back_into_an_empty_bucket(
    archive: Path, bucket: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [each.size for each in verify(archive, access=archive_access()).media.values()] == [
        len(PNG)
    ]
    before = bucket.objects
    bucket.clear()
    call_command("restore", str(archive), "--without-keys")
    assert "and 1 files of messages were restored" in capsys.readouterr().out
    assert bucket.objects == before == {str(MediaFile.objects.get().pk): PNG}


def test_a_backup_whose_storage_does_not_answer_is_none(bucket: S3Server, tmp_path: Path) -> None:
    bucket.refuse_next(503, "SlowDown", times=2)
    with pytest.raises(CommandError, match="No backup was written: S3 refused HeadObject"):
        call_command("backup", str(tmp_path / "all.zip"), "--media", verbosity=0)
    assert not (tmp_path / "all.zip").exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_failing_restore(archive: Path, bucket: S3Server, world: World, is_there: bool) -> None:
    if not is_there:
        bucket.clear()
    before = bucket.objects

    def somebody_writes() -> None:
        world.with_rules(fetch_media=None)
        world.say(CLIENT, "Too early")

    with pytest.raises(RestoreError, match="holds data already"):
        backup_restore(
            path=archive,
            access=archive_access(),
            make_tables=somebody_writes,
            write_keys=no_keys,
            progress=lambda _done, _total: None,
            media=configured_media_storage(),
        )
    assert [each.method for each in bucket.requests].count("PUT") == 2
    assert bucket.objects == before


def test_a_restore_into_a_silent_storage_is_none(archive: Path, bucket: S3Server) -> None:
    bucket.refuse_next(503, "SlowDown", times=2)
    with pytest.raises(CommandError, match="Nothing was restored: S3 refused HeadObject"):
        call_command("restore", str(archive), "--without-keys")
    assert not Chat.objects.exists()
