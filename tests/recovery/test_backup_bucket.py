"""Files of messages that lie in a bucket: backed up from it, and put back into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memoryproject.foundation.integrations.media_storage.storage_choice import (
    configured_media_storage,
)
from sessions_app.backup.dependencies import archive_access
from sessions_app.models import Chat, MediaFile
from tests.loopback.s3_server import S3Server
from tests.recovery.archives import fails_as_somebody_writes, keep_file, verify, with_media
from tests.recovery.contents import wipe
from tests.world import World

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
        keep_file(world, "image", PNG)
        yield server
        wipe()


@pytest.fixture
def archive(bucket: S3Server, tmp_path: Path) -> Path:
    return with_media(tmp_path / "all.zip")


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
    fails_as_somebody_writes(archive, world, media=configured_media_storage())
    assert [each.method for each in bucket.requests].count("PUT") == 2
    assert bucket.objects == before


def test_a_restore_into_a_silent_storage_is_none(archive: Path, bucket: S3Server) -> None:
    bucket.refuse_next(503, "SlowDown", times=2)
    with pytest.raises(CommandError, match="Nothing was restored: S3 refused HeadObject"):
        call_command("restore", str(archive), "--without-keys")
    assert not Chat.objects.exists()
