"""Staff attach a file to a reply: it goes out over HTTP, stands in the conversation, and is kept as
files that people send are.
"""

from __future__ import annotations

import os
import re
import stat
import uuid
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, RequestFactory
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.media_storage.storage_choice import FolderStorage
from sessions_app.media.fetch import ordered_files_remove
from sessions_app.models import Chat, MediaFile, Message, OutboundPart, Turn
from sessions_app.tasks import drop_old_media
from tests.dashboard.senders import (
    INSTANCE,
    by_hand,
    conversation,
    post,
    sending_by_cloud,
    sending_by_green,
)
from tests.dashboard.staff import page
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer
from tests.loopback.httpd import Fault
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
OPUS = b"OggS" + bytes(24) + b"OpusHead" + bytes(200)
VORBIS = b"OggS" + bytes(24) + b"\x01vorbis" + bytes(200)
PDF = b"%PDF-1.7 " + b"x" * 2000
MP4 = bytes(4) + b"ftypisom" + bytes(200)
MEGABYTE = 1024 * 1024
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def archive(*names: str) -> bytes:
    """An archive with these parts, as office programs write them."""
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name in names:
            file.writestr(name, "<xml/>")
    return written.getvalue()


DOCX = archive("[Content_Types].xml", "word/document.xml")
XLS = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(99)


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path, world: World) -> Path:
    """The folder of files, for the page and for the worker."""
    settings.DATA_DIR = tmp_path
    world.use(media=FolderStorage(tmp_path / "media"))
    return tmp_path / "media"


@pytest.fixture
def asked(world: World) -> World:
    world.say(CLIENT, "What does it look like?")
    return world


@pytest.fixture
def graph(asked: World) -> Iterator[GraphServer]:
    with sending_by_cloud(asked) as server:
        yield server


@pytest.fixture
def green(world: World) -> Iterator[GreenServer]:
    with sending_by_green(world) as server:
        world.receive(message_from(CLIENT, "Hi", provider="green", number_id=INSTANCE))
        world.work()
        yield server


def reply(
    client: Client, world: World, content: bytes = PNG, name: str = "lamp.png", **form: Any
) -> Any:
    """Post the form with a file, as a browser does, and let the workers send it."""
    file = SimpleUploadedFile(name, content)
    return post(client, world, "reply", **{"text": "", "file": file, **form})


def pictures(graph: GraphServer) -> int:
    return sum(each["type"] == "image" for each in graph.sent)


def files_in(folder: Path) -> list[Path]:
    return list(folder.glob("*"))


def test_a_picture_goes_out_and_stands_in_the_conversation(
    admin_client: Client, asked: World, graph: GraphServer, folder: Path
) -> None:
    assert reply(admin_client, asked, text="Like *this*").status_code == 302
    message = graph.sent[-1]
    stored = graph.files[message["image"]["id"]]
    assert (stored.content, stored.mime_type) == (PNG, "image/png")
    assert (message["type"], message["image"]["caption"]) == ("image", "Like *this*")
    assert by_hand().state == "sent"
    row = MediaFile.objects.get(message=by_hand().reply)
    assert row.message is not None
    assert row.message.provider_message_id == message["id"]
    place = folder / str(row.pk)
    assert place.read_bytes() == PNG
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    shown = conversation(admin_client, asked)
    address = f"/admin/sessions_app/message/{row.message_id}/media/"
    assert f'<img src="{address}"' in shown
    assert re.search(r'class="text[^>]*>Like <strong>this|class="text[^>]*>Like \*this', shown)
    assert 'aria-label="sent"' in shown
    assert b"".join(admin_client.get(address)) == PNG
    assert AuditEvent.objects.get(action="takeover.reply").details == {"file": "image"}


@pytest.mark.parametrize(
    ("content", "name", "kind", "mime_type"),
    [
        (b"\xff\xd8\xff" + bytes(99), "a.JPG", "image", "image/jpeg"),
        (MP4, "film.mp4", "video", "video/mp4"),
        (OPUS, "voice.ogg", "audio", "audio/ogg"),
        (b"ID3" + bytes(99), "song.mp3", "audio", "audio/mpeg"),
        (PDF, "bill.pdf", "document", "application/pdf"),
        ("Öffnungszeiten: 9–17".encode(), "hours.txt", "document", "text/plain"),
        (DOCX, "offer.docx", "document", WORD),
        (XLS, "old.xls", "document", "application/vnd.ms-excel"),
    ],
)
def test_each_kind_that_meta_takes(
    admin_client: Client,
    asked: World,
    graph: GraphServer,
    content: bytes,
    name: str,
    kind: str,
    mime_type: str,
) -> None:
    reply(admin_client, asked, content, name)
    message = graph.sent[-1]
    assert message["type"] == kind
    assert graph.files[message[kind]["id"]].mime_type == mime_type
    assert message[kind].get("filename") == (name if kind == "document" else None)
    assert by_hand().state == "sent"


@pytest.mark.parametrize(
    ("content", "name", "kind", "text"),
    [(OPUS, "voice.ogg", "audio", "Listen"), (PNG, "lamp.png", "image", "x" * 1025)],
)
def test_a_text_that_can_be_no_caption_follows(
    admin_client: Client,
    asked: World,
    graph: GraphServer,
    content: bytes,
    name: str,
    kind: str,
    text: str,
) -> None:
    reply(admin_client, asked, content, name, text=text)
    file, after = graph.sent[-2:]
    assert set(file[kind]) == {"id"}
    assert after["text"]["body"] == text
    assert Message.objects.get(role="assistant", kind=kind).content == text


def test_by_green_api(admin_client: Client, world: World, green: GreenServer) -> None:
    question = Message.objects.get(role="user")
    reply(admin_client, world, text="Here", quote=str(question.pk))
    sent = green.sent[-1]
    assert green.files[sent["file"]].content == PNG
    assert (sent["caption"], sent["fileName"]) == ("Here", "lamp.png")
    assert sent["quotedMessageId"] == question.provider_message_id
    answered = by_hand().reply
    assert answered is not None
    assert answered.provider_message_id == sent["idMessage"]
    reply(admin_client, world, PDF, "bill.pdf", text="The bill")
    assert "caption" not in green.sent[-2], "pictures and videos have one"
    assert green.sent[-1]["message"] == "The bill"
    # Green API shows a file by its extension, and a name may say anything.
    reply(admin_client, world, PNG, 'ca"t\u202egnp.exe')
    assert green.sent[-1]["fileName"] == "ca tgnp.exe.png"
    # The limits are those of the chat's provider.
    large = reply(admin_client, world, PNG + bytes(5 * MEGABYTE), work=False)
    assert large.status_code == 302


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"<html>" + b"\xff" * 9, "page.png", "WhatsApp takes pictures"),
        (b"MZ" + bytes(99), "setup.pdf", "WhatsApp takes pictures"),
        (archive("a.txt"), "a.docx", "WhatsApp takes pictures"),
        (VORBIS, "song.ogg", "WhatsApp takes pictures"),
        (b"GIF89a" + bytes(99), "cat.gif", "WhatsApp takes pictures"),
        (b"", "empty.png", "the file is empty"),
        (PNG + bytes(5 * MEGABYTE), "large.png", "up to 5.0\u00a0MB"),
        (MP4 + bytes(16 * MEGABYTE), "long.mp4", "up to 16.0\u00a0MB"),
    ],
)
def test_a_file_that_whatsapp_does_not_take_is_refused_and_the_text_is_kept(
    admin_client: Client, asked: World, folder: Path, content: bytes, name: str, words: str
) -> None:
    answer = reply(admin_client, asked, content, name, text="Look at this")
    assert answer.status_code == 409
    assert words in answer.content.decode()
    assert "Look at this</textarea>" in answer.content.decode()
    assert not Turn.objects.filter(by_hand=True).exists()
    assert files_in(folder) == []


def test_a_large_file_is_taken_in_without_a_name_on_the_disk() -> None:
    """A process that is killed during an upload leaves nothing that forgetting can't reach."""
    content = PNG + bytes(4 * MEGABYTE)
    posted = RequestFactory().post("/", {"file": SimpleUploadedFile("large.png", content)})
    file: Any = posted.FILES["file"]
    assert (file.name, file.size) == ("large.png", len(content))
    assert os.fstat(file.fileno()).st_nlink == 0
    assert file.read() == content
    file.close()


def test_a_form_sends_one_file_once(admin_client: Client, asked: World, graph: GraphServer) -> None:
    """Nobody got anything by an upload: also where its outcome is unknown it may be repeated."""
    graph.fail_next(Fault(no_answer="reset", carried_out=True), Fault(answer=Answer(502, {})))
    key = str(uuid.uuid4())
    for _ in range(2):
        assert reply(admin_client, asked, key=key).status_code == 302
    assert by_hand().state == "sent"
    assert pictures(graph) == 1
    assert reply(admin_client, asked, PNG + b"!", key=key).status_code == 409
    assert MediaFile.objects.count() == 1


# How long it is kept


def forgotten(world: World, kind: str, key: Any, run_on_commit: Any) -> Any:
    with run_on_commit(execute=True):
        return world.forget(kind, key)


def test_forgetting_the_message_takes_the_file_and_counts_it(
    admin_client: Client, asked: World, folder: Path, django_capture_on_commit_callbacks: Any
) -> None:
    reply(admin_client, asked, name="azalea.png", text="the azalea in the hall")
    key = Message.objects.get(kind="image").pk
    receipt = forgotten(asked, "message", key, django_capture_on_commit_callbacks)
    assert receipt.swept["media files"] == 1
    assert files_in(folder) == []
    assert "azalea" not in str(list(Turn.objects.values())) + str(list(Message.objects.values()))


def test_a_file_that_was_forgotten_before_it_went_out_is_not_sent(
    admin_client: Client, asked: World, django_capture_on_commit_callbacks: Any
) -> None:
    reply(admin_client, asked, text="the azalea in the hall", work=False)
    key = Message.objects.get(kind="image").pk
    forgotten(asked, "message", key, django_capture_on_commit_callbacks)
    asked.work()
    assert asked.provider.sent_files == {}
    shown = page(admin_client, f"/admin/sessions_app/turn/{by_hand().pk}/change/")
    assert "not stored any more" in shown


def test_it_is_removed_after_the_retention_of_files(
    admin_client: Client, asked: World, folder: Path, settings: Any
) -> None:
    """Where none are kept it stays until it is sent."""
    settings.MEDIA_RETENTION_DAYS = 0
    reply(admin_client, asked, work=False)
    drop_old_media()
    asked.work()
    assert len(asked.provider.sent_files) == 1
    settings.MEDIA_RETENTION_DAYS = 3
    for days, dropped in ((2, 0), (4, 1)):
        MediaFile.objects.update(created_at=timezone.now() - timedelta(days=days))
        assert drop_old_media() == dropped
    assert files_in(folder) == []
    assert "removed after its retention" in conversation(admin_client, asked)


@pytest.mark.parametrize("what", ["send", "forget"])
def test_where_memory_is_off_it_is_kept_until_it_is_sent(
    admin_client: Client,
    asked: World,
    folder: Path,
    django_capture_on_commit_callbacks: Any,
    what: str,
) -> None:
    Chat.objects.update(memory_enabled=False)
    reply(admin_client, asked, name="azalea.png", text="the azalea", work=False)
    assert not Message.objects.filter(kind="image").exists()
    assert ordered_files_remove(FolderStorage(folder)) == 0
    if what == "send":
        asked.work()
        ((_, file),) = asked.provider.sent_files.items()
        assert (file.filename, file.content) == ("azalea.png", PNG)
        assert asked.provider.sent[-1].text == "the azalea"
        assert ordered_files_remove(FolderStorage(folder)) == 1
    else:
        chat = asked.chat(CLIENT).pk
        forgotten(asked, "chat", chat, django_capture_on_commit_callbacks)
        ordered_files_remove(FolderStorage(folder))
    assert files_in(folder) == []
    assert not MediaFile.objects.exists()
    assert "azalea" not in str(list(Turn.objects.filter(by_hand=True).values()))
    assert not OutboundPart.objects.exclude(content="").exists()
