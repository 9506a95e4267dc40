"""Answers and replies that need a file out of the bucket, or put one into it."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.models import MediaFile, Turn
from tests.dashboard.staff import staff_with
from tests.loopback.s3_server import S3Server
from tests.media.conftest import PNG, PREFIX, Files
from tests.world import CLIENT, message_from

# To make a client of S3 takes a good part of a second.
pytestmark = [pytest.mark.django_db, pytest.mark.slow]
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
