"""Files of messages in a bucket: what goes wrong over a network, and what stays private."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.media_storage.base import MediaStorageError
from memoryproject.foundation.integrations.media_storage.bucket import Bucket, BucketStorage
from memoryproject.foundation.leases import leases_sweep
from sessions_app.models import ForgetReceipt, MediaFile
from sessions_app.sweeps import leased_kinds
from sessions_app.tasks import drop_old_media
from tests.dashboard.staff import staff_with
from tests.loopback.httpd import Fault
from tests.loopback.s3_server import S3Server
from tests.media.conftest import PNG, PREFIX, Files

# To make a client of S3 takes a good part of a second.
pytestmark = [pytest.mark.django_db, pytest.mark.slow]
LARGE = PNG + bytes(600_000)


def address(row: MediaFile) -> str:
    return f"/admin/sessions_app/message/{row.message_id}/media/"


def reader() -> Client:
    return staff_with("sessions_app.view_message", "sessions_app.view_chat")


def impatient(server: S3Server, folder: Path) -> BucketStorage:
    """The same bucket, with a timeout of its own."""
    bucket = Bucket(
        server.bucket,
        PREFIX.rstrip("/"),
        server.url,
        server.region,
        server.key_id,
        server.secret,
        timeout=0.2,
    )
    return BucketStorage(bucket, incoming=folder)


def forget(files: Files, row: MediaFile, callbacks: Any) -> ForgetReceipt:
    with callbacks(execute=True):
        receipt = files.world.forget("message", row.message_id)
    # It is asked before anybody is told that the file is forgotten.
    assert files.bucket is not None
    assert "DELETE" in {each.method for each in files.bucket.requests}
    return receipt


@pytest.mark.parametrize(
    "fault",
    [(403, "AccessDenied"), (500, "InternalError"), (503, "SlowDown"), (404, "NoSuchBucket")],
)
def test_a_storage_that_refuses_leaves_the_file_for_later(
    in_bucket: Files, server: S3Server, fault: tuple[int, str], caplog: pytest.LogCaptureFixture
) -> None:
    row = in_bucket.send()
    # What may pass is tried twice at once.
    server.refuse_next(*fault, times=2 if fault[0] >= 500 else 1)
    row = in_bucket.fetch(row)
    assert (row.state, row.error_code) == ("pending", "storage")
    assert f"S3 refused PutObject: {fault[1]}" in caplog.text
    assert not any(record.exc_info for record in caplog.records)
    assert in_bucket.kept() == {}
    MediaFile.objects.update(not_before=None)
    assert in_bucket.fetch(row).state == "stored"
    assert server.objects == {f"{PREFIX}{row.pk}": PNG}


@pytest.mark.parametrize("how", ["hang", "reset"])
def test_a_storage_that_says_nothing_is_not_waited_for(
    in_bucket: Files, server: S3Server, how: str, tmp_path: Path
) -> None:
    storage = impatient(server, tmp_path / "other")
    row = in_bucket.send()
    server.fail_next(Fault(no_answer=how), Fault(no_answer=how))
    row = in_bucket.fetch(row, storage=storage)
    assert (row.state, row.error_code) == ("pending", "storage")
    MediaFile.objects.update(not_before=None)
    assert in_bucket.fetch(row, storage=storage).state == "stored"


def test_the_page_says_that_the_storage_does_not_answer(
    in_bucket: Files, server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    row = in_bucket.fetch(in_bucket.send())
    client = reader()
    caplog.clear()
    for asked in ({}, {"range": "bytes=0-3"}):
        server.refuse_next(500, "InternalError", times=2)
        answer = client.get(address(row), headers=asked)
        assert answer.status_code == 503
        assert "The storage of files doesn't answer." in answer.content.decode()
    ours = [each for each in caplog.records if each.name.startswith("sessions_app")]
    assert len(ours) == 2
    assert not any(record.exc_info for record in caplog.records)
    assert client.get(address(row)).status_code == 200


def test_the_page_of_an_object_now_gone_is_not_found(in_bucket: Files, server: S3Server) -> None:
    row = in_bucket.fetch(in_bucket.send())
    in_bucket.storage.remove([str(row.pk)])
    assert reader().get(address(row)).status_code == 404


def test_an_answer_that_breaks_off_breaks_the_page_off(in_bucket: Files, server: S3Server) -> None:
    """A browser would wait for the rest for ever, or take a part for the whole."""
    row = in_bucket.fetch(in_bucket.send())
    part = Answer(206, {}, {"Content-Type": "application/octet-stream"}, content=PNG[:100])
    server.fail_next_get(Fault(answer=part), Fault(answer=part))
    answer: Any = reader().get(address(row))
    with pytest.raises(ConnectionResetError):
        b"".join(answer)


def test_a_player_gets_a_range_without_the_rest(in_bucket: Files, server: S3Server) -> None:
    row = in_bucket.fetch(in_bucket.send(PNG + bytes(range(200)), kind="image"))
    server.requests.clear()
    answer: Any = reader().get(address(row), headers={"range": f"bytes={len(PNG)}-"})
    assert b"".join(answer) == bytes(range(200))
    asked = [each.headers["range"] for each in server.requests if each.method == "GET"]
    assert asked == [f"bytes={len(PNG)}-"]


def test_a_large_file_is_read_in_blocks(tmp_path: Path) -> None:
    with S3Server() as server:
        storage = impatient(server, tmp_path)
        whole = tmp_path / "whole"
        whole.write_bytes(LARGE)
        storage.put("large", whole)
        assert [each.method for each in server.requests] == ["PUT"]
        with storage.open("large") as file:
            assert file.seek(-600_000, 2) == len(PNG)
            assert file.read() == bytes(600_000)
            assert file.seek(0) == 0
            assert file.read(len(PNG)) == PNG
            assert file.tell() == len(PNG)


def test_a_file_is_forgotten_once_the_storage_answers_again(
    in_bucket: Files, server: S3Server, django_capture_on_commit_callbacks: Any
) -> None:
    row = in_bucket.fetch(in_bucket.send())
    server.refuse_next(503, "SlowDown", times=2)
    receipt = forget(in_bucket, row, django_capture_on_commit_callbacks)
    assert receipt.swept["media files"] == 1
    # The row is the order to remove it: it stays until the object is gone.
    assert MediaFile.objects.filter(pk=row.pk).exists()
    assert len(server.objects) == 1
    server.refuse_next(503, "SlowDown", times=2)
    leases_sweep(list(leased_kinds()))
    assert MediaFile.objects.filter(pk=row.pk).exists()
    leases_sweep(list(leased_kinds()))
    assert server.objects == {}
    assert not MediaFile.objects.exists()


def test_a_bucket_that_keeps_versions_keeps_none_of_what_is_forgotten(
    in_bucket: Files, server: S3Server, django_capture_on_commit_callbacks: Any
) -> None:
    server.versioned = True
    row = in_bucket.fetch(in_bucket.send())
    server.add(f"{PREFIX}{row.pk}-of-others", b"theirs")
    assert server.everything == [PNG, b"theirs"]
    forget(in_bucket, row, django_capture_on_commit_callbacks)
    assert server.everything == [b"theirs"]


def test_retention_waits_for_the_storage(in_bucket: Files, server: S3Server) -> None:
    row = in_bucket.fetch(in_bucket.send())
    MediaFile.objects.update(created_at=timezone.now().replace(year=2001))
    server.refuse_next(403, "AccessDenied")
    assert drop_old_media() == 0
    row.refresh_from_db()
    assert row.state == "stored"
    assert drop_old_media() == 1
    assert server.objects == {}


def test_what_others_keep_in_the_bucket_is_left_alone(in_bucket: Files, server: S3Server) -> None:
    foreign = ["readme.txt", f"{PREFIX}notes", f"{PREFIX}deeper/0", "0"]
    for name in foreign:
        server.add(name, b"theirs", modified=timezone.now().replace(year=2001))
    drop_old_media()
    assert sorted(server.objects) == sorted(foreign)


def test_no_address_of_an_object_and_no_key_is_shown(
    in_bucket: Files, server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    row = in_bucket.fetch(in_bucket.send())
    client = reader()
    answer: Any = client.get(address(row))
    assert server.url not in str(answer.headers)
    server.secret = "another"
    shown = client.get(address(row))
    assert shown.status_code == 503
    with pytest.raises(MediaStorageError) as refused:
        in_bucket.storage.open(str(row.pk))
    for text in (shown.content.decode(), str(refused.value), caplog.text):
        assert S3Server.secret not in text
        assert S3Server.key_id not in text
    puts = [each for each in server.requests if each.method == "PUT"]
    assert puts
    assert not any("x-amz-acl" in each.headers for each in puts)
