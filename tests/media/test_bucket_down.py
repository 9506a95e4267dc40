"""A bucket that is down is left alone for a while, and named wherever sick services are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.events import Media
from memoryproject.foundation.outside_services.models import OutsideService, services_sick
from memoryproject.staff_site.tasks import check_alerts
from sessions_app.models import MediaFile, Turn
from tests.dashboard.staff import staff_with
from tests.loopback.httpd import Fault
from tests.loopback.s3_server import S3Server
from tests.media.conftest import PNG, PREFIX, Files
from tests.world import CLIENT, message_from

# To make a client of S3 takes a good part of a second.
pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def services(client: Client) -> dict[str, str]:
    found: dict[str, str] = client.get("/readyz").json()["services"]
    return found


def refused(files: Files, server: S3Server) -> MediaFile:
    """A file that can't be put, twice."""
    row = files.send()
    for _ in range(2):
        server.refuse_next(403, "AccessDenied")
        MediaFile.objects.update(not_before=None)
        assert files.fetch(row).state == "pending"
    return row


def test_staff_and_monitoring_see_that_the_bucket_is_down_and_up_again(
    in_bucket: Files, server: S3Server, admin_client: Client
) -> None:
    assert services(admin_client) == {}
    row = refused(in_bucket, server)
    assert list(services(admin_client)) == ["media_storage"]
    check_alerts()
    said = f"Bucket of files ({server.bucket} at 127.0.0.1:{server.url.rpartition(':')[2]})"
    for page in ("/admin/", "/admin/operations/"):
        shown = admin_client.get(page).content.decode()
        assert said in shown
        assert "It answered 403." in shown
        assert server.secret not in shown
    metrics = admin_client.get("/metrics").content.decode()
    assert 'memory_service_sick{service="media_storage"} 1.0' in metrics

    OutsideService.objects.update(opened_at=timezone.now() - timedelta(minutes=1))
    MediaFile.objects.update(not_before=None)
    assert in_bucket.fetch(row).state == "stored"
    check_alerts()
    assert services(admin_client) == {}
    assert said not in admin_client.get("/admin/operations/").content.decode()


def test_it_is_not_asked_while_it_is_down(in_bucket: Files, server: S3Server) -> None:
    row = refused(in_bucket, server)
    asked = len(server.requests)
    MediaFile.objects.update(not_before=None)
    row = in_bucket.fetch(row)
    assert (row.state, row.error_code) == ("pending", "storage")
    assert len(server.requests) == asked


def test_five_times_without_an_answer_are_enough(in_bucket: Files, server: S3Server) -> None:
    """The client itself tries each twice."""
    for number in range(5):
        assert services_sick() == [], number
        server.fail_next(Fault(no_answer="reset"), Fault(no_answer="reset"))
        in_bucket.fetch(in_bucket.send())
    (service,) = services_sick()
    assert str(service.error) == "It could not be reached."


def test_a_missing_object_tells_nothing_of_the_bucket(in_bucket: Files, server: S3Server) -> None:
    for _ in range(6):
        with pytest.raises(FileNotFoundError):
            in_bucket.storage.open("00000000-0000-4000-8000-000000000001")
    assert services_sick() == []


# Answers and replies that need a file out of the bucket, or put one into it.


# To make a client of S3 takes a good part of a second.
RIGHTS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.takeover_chat")


@pytest.mark.parametrize("is_down", [True, False])
def test_a_model_sees_the_picture_or_not(in_bucket: Files, server: S3Server, is_down: bool) -> None:
    world = in_bucket.world
    world.with_answer_rules(sees_pictures=True)
    media = Media(media_id=in_bucket.graph.add_file(PNG, "image/png"))
    world.receive(message_from(CLIENT, "Look", kind="image", media=media))
    in_bucket.fetch(MediaFile.objects.get())
    server.refuse_next(500, "InternalError", times=2 if is_down else 0)
    world.work()
    assert [each.content for each in world.prompt()[-1].pictures] == ([] if is_down else [PNG])


def reply(files: Files) -> Any:
    """Staff answer with a picture."""
    files.world.say(CLIENT, "What does it look like?")
    address = f"/admin/sessions_app/turn/takeover/{files.world.chat(CLIENT).pk}/reply/"
    form = {"text": "Like this", "key": str(uuid4()), "file": SimpleUploadedFile("a.png", PNG)}
    return staff_with(*RIGHTS).post(address, form)


def test_a_reply_with_a_file_goes_out_of_the_bucket(in_bucket: Files, server: S3Server) -> None:
    reply(in_bucket)
    row = MediaFile.objects.get()
    assert server.objects == {f"{PREFIX}{row.pk}": PNG}
    in_bucket.world.work()
    assert [file.content for file in in_bucket.world.provider.sent_files.values()] == [PNG]


def test_a_reply_whose_file_finds_no_place_is_refused(in_bucket: Files, server: S3Server) -> None:
    server.refuse_next(503, "SlowDown", times=2)
    page = reply(in_bucket).content.decode()
    assert "the storage of files doesn&#x27;t answer. Your text is kept." in page
    assert "Like this" in page
    assert not Turn.objects.filter(by_hand=True).exists()
    assert in_bucket.kept() == {}


def test_a_reply_that_is_refused_leaves_no_file(in_bucket: Files, server: S3Server) -> None:
    key = str(uuid4())
    in_bucket.world.say(CLIENT, "What does it look like?")
    address = f"/admin/sessions_app/turn/takeover/{in_bucket.world.chat(CLIENT).pk}/reply/"
    client = staff_with(*RIGHTS)
    for text in ("Like this", "Like that"):
        file = SimpleUploadedFile("a.png", PNG)
        client.post(address, {"text": text, "key": key, "file": file})
    assert list(server.objects) == [f"{PREFIX}{MediaFile.objects.get().pk}"]


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_an_unreadable_file_is_sent_later(in_bucket: Files, server: S3Server, method: str) -> None:
    reply(in_bucket)
    if method == "HEAD":
        server.refuse_next(503, "SlowDown", times=8)
    else:
        server.refuse_next_get(503, "SlowDown", times=8)
    in_bucket.world.work()
    turn = Turn.objects.get(by_hand=True)
    assert turn.state == "replied"
    assert in_bucket.world.provider.sent_files == {}
    Turn.objects.update(not_before=None)
    in_bucket.world.work()
    assert [file.content for file in in_bucket.world.provider.sent_files.values()] == [PNG]
