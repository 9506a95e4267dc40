"""Files of messages: fetched once over HTTP, shown to who may read, removed with their messages."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.integrations.whatsapp.events import MessageRevoked, Party
from sessions_app.media.fetch import media_abandoned, media_drop, media_fetch, ordered_files_remove
from sessions_app.models import MediaFile
from sessions_app.tasks import drop_old_media
from tests.dashboard.staff import staff_with
from tests.loopback.httpd import Fault
from tests.media.conftest import PNG, Files
from tests.world import CLIENT, NUMBER_ID

pytestmark = pytest.mark.django_db

# Of what happens before anything is put there it makes no difference where files are kept.
ANYWHERE = pytest.mark.parametrize("files", ["folder"], indirect=True)
PDF = b"%PDF-1.7 " + b"x" * 2000
OGG = b"OggS" + bytes(range(200))


def address(row: MediaFile) -> str:
    return f"/admin/sessions_app/message/{row.message_id}/media/"


def reader() -> Client:
    return staff_with("sessions_app.view_message", "sessions_app.view_chat")


def conversation(files: Files, client: Client) -> str:
    path = f"/admin/sessions_app/chat/{files.world.chat(CLIENT).pk}/conversation/"
    return client.get(path).content.decode()


def body(answer: Any) -> bytes:
    return b"".join(answer) if answer.streaming else bytes(answer.content)


def test_a_picture_is_fetched_once_and_kept_for_its_owner_alone(files: Files) -> None:
    row = files.fetch(files.send())
    assert (row.state, row.content_type, row.size) == ("stored", "image/png", len(PNG))
    assert files.kept() == {str(row.pk): PNG}
    if files.bucket is None:
        assert stat.S_IMODE((files.folder / str(row.pk)).stat().st_mode) == 0o600
    assert stat.S_IMODE(files.storage.incoming.stat().st_mode) == 0o700
    asked = len(files.graph.requests)
    files.fetch(row)
    assert len(files.graph.requests) == asked


def test_it_is_shown_in_the_conversation_and_each_view_is_on_record(files: Files) -> None:
    row = files.send()
    client = reader()
    assert "The file is being fetched." in conversation(files, client)
    files.fetch(row)
    assert f'<img src="{address(row)}"' in conversation(files, client)
    before = AuditEvent.objects.filter(action="conversation.read").count()
    answer = client.get(address(row))
    assert body(answer) == PNG
    assert answer["Content-Type"] == "image/png"
    assert answer["Content-Disposition"].startswith("inline")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert AuditEvent.objects.filter(action="conversation.read").count() == before + 1


def test_a_player_asks_for_ranges(files: Files) -> None:
    row = files.fetch(files.send(OGG, kind="voice"))
    client = reader()
    assert f'<audio controls preload="none" src="{address(row)}"' in conversation(files, client)
    for asked, status, part, which in (
        ("bytes=4-7", 206, OGG[4:8], "bytes 4-7/204"),
        ("bytes=200-", 206, OGG[200:], "bytes 200-203/204"),
        ("bytes=-3", 206, OGG[-3:], "bytes 201-203/204"),
        ("bytes=100-999", 206, OGG[100:], "bytes 100-203/204"),
        ("bytes=204-", 416, b"", "bytes */204"),
    ):
        answer = client.get(address(row), headers={"range": asked})
        assert (answer.status_code, body(answer)) == (status, part)
        assert answer["Content-Range"] == which
    whole = client.get(address(row), headers={"range": "lines=1-2"})
    assert (whole.status_code, body(whole)) == (200, OGG)


def test_a_document_is_downloaded_under_its_name(files: Files) -> None:
    row = files.fetch(files.send(PDF, kind="document", filename='a"b\r\n.pdf'))
    client = reader()
    assert "Download the file" in conversation(files, client)
    answer = client.get(address(row))
    assert body(answer) == PDF
    assert answer["Content-Type"] == "application/pdf"
    assert answer["Content-Disposition"].startswith("attachment")


@ANYWHERE
@pytest.mark.parametrize(
    ("content", "changes", "code", "words"),
    [
        (b"<html><script>alert(1)</script>", {}, "type", "Files of this type"),
        (PNG, {"max_bytes": 100}, "too_large", "too large"),
    ],
)
def test_what_may_not_be_kept_is_refused(
    files: Files, content: bytes, changes: dict[str, Any], code: str, words: str
) -> None:
    """Whatever type the sender states."""
    row = files.fetch(files.send(content, mime_type="image/png"), **changes)
    assert (row.state, row.error_code) == ("refused", code)
    assert files.kept() == {}
    client = reader()
    assert words in conversation(files, client)
    assert client.get(address(row)).status_code == 404


@ANYWHERE
def test_a_file_that_whatsapp_no_longer_has(files: Files) -> None:
    row = files.send()
    files.graph.files.clear()
    assert files.fetch(row).state == "failed"
    assert "no longer has the file" in conversation(files, reader())


@ANYWHERE
def test_a_failure_is_tried_again_later_and_not_before(files: Files) -> None:
    row = files.send()
    files.graph.fail_next_get(Fault(answer=Answer(503, {})))
    row = files.fetch(row)
    assert (row.state, row.attempts, row.error_code) == ("pending", 1, "unavailable")
    assert media_abandoned(timezone.now()) == []
    assert files.fetch(row).state == "pending"
    later = timezone.now() + timedelta(minutes=1)
    assert media_abandoned(later) == [row.pk]
    MediaFile.objects.update(not_before=None)
    assert files.fetch(row).state == "stored"


@ANYWHERE
def test_a_failure_that_lasts_is_given_up(files: Files) -> None:
    row = files.send()
    for _ in range(5):
        MediaFile.objects.update(not_before=None)
        files.graph.fail_next_get(Fault(answer=Answer(503, {})))
        row = files.fetch(row)
    assert (row.state, row.attempts) == ("failed", 5)


def test_a_disk_that_takes_nothing_leaves_it_for_later(files: Files) -> None:
    row = files.send()
    files.storage.incoming.write_bytes(b"no folder can be here")
    row = files.fetch(row)
    assert (row.state, row.error_code) == ("pending", "storage")


@ANYWHERE
def test_a_redirect_to_another_network_is_refused(files: Files) -> None:
    row = files.send()
    away = Answer(302, {}, {"Location": "http://10.0.0.1/secret"})
    files.graph.fail_next_get(Fault(), Fault(answer=away))
    assert files.fetch(row).state == "refused"


def test_forgetting_takes_the_file(files: Files, django_capture_on_commit_callbacks: Any) -> None:
    row = files.fetch(files.send())
    with django_capture_on_commit_callbacks(execute=True):
        receipt = files.world.forget("message", row.message_id)
    assert receipt.swept["media files"] == 1
    files.remove_queued()
    assert files.kept() == {}
    assert not MediaFile.objects.exists()


def test_a_crash_after_the_commit_leaves_the_order_to_remove_it(files: Files) -> None:
    row = files.fetch(files.send())
    files.world.messages(CLIENT)[0].delete()
    assert str(row.pk) in files.kept()
    assert reader().get(address(row)).status_code == 404
    assert ordered_files_remove(files.storage) == 1
    assert files.kept() == {}
    assert ordered_files_remove(files.storage) == 0


def test_a_file_whose_message_goes_meanwhile_is_not_kept(files: Files) -> None:
    row = files.send()
    files.world.messages(CLIENT)[0].delete()
    files.fetch(row)
    assert files.kept() == {}


def test_what_its_sender_deletes_goes(
    files: Files, django_capture_on_commit_callbacks: Any
) -> None:
    row = files.fetch(files.send())
    assert row.message is not None
    with django_capture_on_commit_callbacks(execute=True):
        files.world.receive(
            MessageRevoked(
                provider="cloud",
                number_id=NUMBER_ID,
                party=Party(phone="15550100123"),
                timestamp=timezone.now(),
                delivery_key="revoke",
                original_id=str(row.message.provider_message_id),
            )
        )
    files.remove_queued()
    row.message.refresh_from_db()
    assert row.message.revoked_at
    assert files.kept() == {}


def test_it_is_removed_after_its_retention(files: Files) -> None:
    row = files.fetch(files.send())
    day = timedelta(days=1)
    assert media_drop(files.storage, before=row.created_at - day) == 0
    assert media_drop(files.storage, before=row.created_at + day) == 1
    assert files.kept() == {}
    assert "removed after its retention" in conversation(files, reader())


def test_only_what_killed_workers_left_is_swept(files: Files) -> None:
    row = files.fetch(files.send())
    strays, young = [str(uuid4()) for _ in range(4)], str(uuid4())
    for name in (*strays, young):
        files.lay(name)
    for name in (".incoming-x", ".incoming-y"):
        (files.storage.incoming / name).write_bytes(b"x")
    for name in (*strays, ".incoming-x", str(row.pk)):
        files.age(name)
    drop_old_media()
    assert set(files.kept()) == {".incoming-y", young, str(row.pk)}


def test_a_message_that_is_forgotten_while_its_file_is_put_leaves_none(files: Files) -> None:
    row = files.send()

    class Forgotten(CloudProvider):
        def fetch_media(self, *, into: Any, **_: Any) -> None:
            into.write(PNG)
            files.world.messages(CLIENT)[0].delete()
            # The order waits for the worker that is about to put the file.
            assert ordered_files_remove(files.storage) == 0

    slow = Forgotten(api_url="", phone_number_id="1", access_token="x", timeout=1.0)
    dependencies = replace(files.dependencies, providers={"cloud": slow})
    assert media_fetch(media_id=row.pk, dependencies=dependencies) == "gone"
    assert files.kept() == {}
    assert ordered_files_remove(files.storage) == 1
    assert not MediaFile.objects.exists()


@ANYWHERE
def test_where_files_are_not_kept_none_is_asked_for(files: Files, settings: Any) -> None:
    settings.MEDIA_RETENTION_DAYS = 0
    files.world.say(CLIENT, "hello")
    assert not MediaFile.objects.exists()
