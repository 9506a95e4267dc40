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
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, RequestFactory
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.integrations.loopback.httpd import Answer
from memoryproject.foundation.integrations.media_storage.storage_choice import FolderStorage
from memoryproject.foundation.integrations.whatsapp.base import SendError
from sessions_app.forgetting.facade import ForgetDependencies, object_forget
from sessions_app.media.facade import ordered_files_remove
from sessions_app.models import Chat, MediaFile, Message, OutboundPart, Turn
from sessions_app.tasks import drop_old_media
from tests.dashboard.senders import INSTANCE, sending_by_cloud, sending_by_green
from tests.dashboard.staff import staff_with
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
RIGHTS = ("sessions_app.view_chat", "sessions_app.view_message", "sessions_app.takeover_chat")


def archive(*names: str) -> bytes:
    """An archive with these parts, as office programs write them."""
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name in names:
            file.writestr(name, "<xml/>")
    return written.getvalue()


DOCX = archive("[Content_Types].xml", "word/document.xml")


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path, world: World) -> Path:
    """The folder of files, for the page and for the worker."""
    settings.ENABLE_MEMORY_SYSTEM = True
    settings.DATA_DIR = tmp_path
    world.dependencies = replace(world.dependencies, media=FolderStorage(tmp_path / "media"))
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
    client: Client,
    world: World,
    content: bytes = PNG,
    name: str = "lamp.png",
    *,
    text: str = "",
    key: str = "",
    work: bool = True,
    **fields: Any,
) -> Any:
    """Post the form with a file, as a browser does, and let the workers send it."""
    address = f"/admin/sessions_app/turn/takeover/{world.chat(CLIENT).pk}/reply/"
    file = SimpleUploadedFile(name, content)
    form = {"text": text, "key": key or str(uuid.uuid4()), "file": file, **fields}
    answer = client.post(address, form)
    if work:
        world.work()
    return answer


def conversation(client: Client, world: World) -> str:
    address = f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/"
    return client.get(address).content.decode()


def sent_turn() -> Turn:
    return Turn.objects.get(by_hand=True)


def test_a_picture_goes_out_by_the_cloud_api(
    admin_client: Client, asked: World, graph: GraphServer, folder: Path
) -> None:
    assert reply(admin_client, asked, text="Like *this*").status_code == 302
    message = graph.sent[-1]
    stored = graph.files[message["image"]["id"]]
    assert (stored.content, stored.mime_type) == (PNG, "image/png")
    assert (message["type"], message["image"]["caption"]) == ("image", "Like *this*")
    turn = sent_turn()
    assert turn.state == "sent"
    assert turn.reply is not None
    assert turn.reply.provider_message_id == message["id"]
    row = MediaFile.objects.get(message=turn.reply)
    place = folder / str(row.pk)
    assert place.read_bytes() == PNG
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_it_stands_in_the_conversation_like_one_that_came_in(
    admin_client: Client, asked: World, graph: GraphServer
) -> None:
    reply(admin_client, asked, text="This one")
    row = MediaFile.objects.get()
    page = conversation(admin_client, asked)
    assert f'<img src="/admin/sessions_app/message/{row.message_id}/media/"' in page
    assert re.search(r'class="text[^>]*>This one<', page)
    shown = admin_client.get(f"/admin/sessions_app/message/{row.message_id}/media/")
    assert b"".join(shown) == PNG
    assert 'aria-label="sent"' in page


@pytest.mark.parametrize(
    ("content", "name", "kind", "mime_type"),
    [
        (b"\xff\xd8\xff" + bytes(99), "a.JPG", "image", "image/jpeg"),
        (MP4, "film.mp4", "video", "video/mp4"),
        (OPUS, "voice.ogg", "audio", "audio/ogg"),
        (b"ID3" + bytes(99), "song.mp3", "audio", "audio/mpeg"),
        (PDF, "bill.pdf", "document", "application/pdf"),
        ("Öffnungszeiten: 9–17".encode(), "hours.txt", "document", "text/plain"),
        (
            DOCX,
            "offer.docx",
            "document",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (
            bytes.fromhex("d0cf11e0a1b11ae1") + bytes(99),
            "old.xls",
            "document",
            "application/vnd.ms-excel",
        ),
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
    assert sent_turn().state == "sent"


def test_audio_takes_no_caption_so_the_text_follows(
    admin_client: Client, asked: World, graph: GraphServer
) -> None:
    reply(admin_client, asked, OPUS, "voice.ogg", text="Listen")
    audio, text = graph.sent[-2:]
    assert set(audio["audio"]) == {"id"}
    assert text["text"]["body"] == "Listen"
    assert Message.objects.get(role="assistant", kind="audio").content == "Listen"


def test_a_text_that_is_too_long_for_a_caption_follows(
    admin_client: Client, asked: World, graph: GraphServer
) -> None:
    reply(admin_client, asked, text="x" * 1025)
    picture, text = graph.sent[-2:]
    assert "caption" not in picture["image"]
    assert text["text"]["body"] == "x" * 1025


def test_by_green_api(admin_client: Client, world: World, green: GreenServer) -> None:
    question = Message.objects.get(role="user")
    reply(admin_client, world, text="Here", quote=str(question.pk))
    sent = green.sent[-1]
    assert green.files[sent["file"]].content == PNG
    assert (sent["caption"], sent["fileName"]) == ("Here", "lamp.png")
    assert sent["quotedMessageId"] == question.provider_message_id
    assert sent_turn().reply.provider_message_id == sent["idMessage"]  # type: ignore[union-attr]


def test_green_api_captions_pictures_and_videos_only(
    admin_client: Client, world: World, green: GreenServer
) -> None:
    reply(admin_client, world, PDF, "bill.pdf", text="The bill")
    assert "caption" not in green.sent[-2]
    assert green.sent[-1]["message"] == "The bill"


def test_a_name_gets_the_extension_of_its_type(
    admin_client: Client, world: World, green: GreenServer
) -> None:
    """Green API shows a file by its extension, and a name may say anything."""
    reply(admin_client, world, PNG, 'ca"t\u202egnp.exe')
    assert green.sent[-1]["fileName"] == "ca tgnp.exe.png"


def test_it_quotes_the_chosen_message(
    admin_client: Client, asked: World, graph: GraphServer
) -> None:
    question = Message.objects.get(role="user")
    reply(admin_client, asked, quote=str(question.pk))
    assert graph.sent[-1]["context"] == {"message_id": question.provider_message_id}


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
    page = answer.content.decode()
    assert words in page
    assert "Look at this</textarea>" in page
    assert not Turn.objects.filter(by_hand=True).exists()
    assert list(folder.glob("*")) == []


def test_the_limits_are_those_of_the_chats_provider(
    admin_client: Client, world: World, green: GreenServer
) -> None:
    reply(admin_client, world, PNG + bytes(5 * MEGABYTE), work=False)
    assert sent_turn().state == "replied"


def test_the_window_holds_for_files_too(admin_client: Client, asked: World, folder: Path) -> None:
    Message.objects.update(timestamp=timezone.now() - timedelta(hours=25))
    Turn.objects.update(asked_at=timezone.now() - timedelta(hours=25))
    answer = reply(admin_client, asked, text="Too late?")
    assert answer.status_code == 409
    assert "Too late?" in answer.content.decode()
    assert list(folder.glob("*")) == []


@pytest.mark.parametrize("missing", RIGHTS)
def test_who_may_not_reply_may_not_attach(asked: World, folder: Path, missing: str) -> None:
    client = staff_with(*(right for right in RIGHTS if right != missing))
    assert reply(client, asked).status_code == 403
    assert not MediaFile.objects.exists()


def test_who_may_reply_is_offered_the_kinds_that_the_provider_takes(asked: World) -> None:
    page = conversation(staff_with(*RIGHTS), asked)
    assert f'data-most-image="{5 * MEGABYTE}"' in page
    assert 'accept=".jpg,' in page


def test_who_may_only_read_is_offered_no_file(asked: World) -> None:
    assert "takeover-file" not in conversation(staff_with(*RIGHTS[:2]), asked)


def test_a_large_file_is_taken_in_without_a_name_on_the_disk() -> None:
    """A process that is killed during an upload leaves nothing that forgetting can't reach."""
    content = PNG + bytes(4 * MEGABYTE)
    posted = RequestFactory().post("/", {"file": SimpleUploadedFile("large.png", content)})
    file: Any = posted.FILES["file"]
    assert (file.name, file.size) == ("large.png", len(content))
    assert os.fstat(file.fileno()).st_nlink == 0
    assert file.read() == content
    file.close()


def test_forgetting_the_chat_takes_a_file_that_waits_without_a_message(
    admin_client: Client, asked: World, folder: Path
) -> None:
    Chat.objects.update(memory_enabled=False)
    reply(admin_client, asked, work=False)
    dependencies = ForgetDependencies(
        embedder=WordLlamaEmbedder(), chat_memory=asked.rules.chat_memory
    )
    object_forget(kind="chat", object_id=asked.chat(CLIENT).pk, dependencies=dependencies)
    assert ordered_files_remove(FolderStorage(folder)) == 1
    assert list(folder.glob("*")) == []


def test_it_is_on_record_without_its_content(admin_client: Client, asked: World) -> None:
    reply(admin_client, asked, name="secret-plan.png", text="sesame")
    event = AuditEvent.objects.get(action="takeover.reply")
    assert event.details == {"file": "image"}


def test_the_same_form_sends_once_and_another_file_by_its_key_is_refused(
    admin_client: Client, asked: World, graph: GraphServer
) -> None:
    key = str(uuid.uuid4())
    for _ in range(2):
        assert reply(admin_client, asked, key=key).status_code == 302
    assert len([each for each in graph.sent if each["type"] == "image"]) == 1
    assert reply(admin_client, asked, PNG + b"!", key=key).status_code == 409
    assert MediaFile.objects.count() == 1


def test_a_failed_upload_is_tried_again_and_sends_once(
    admin_client: Client, asked: World, graph: GraphServer
) -> None:
    """Nobody got anything by an upload: also where its outcome is unknown it may be repeated."""
    graph.fail_next(Fault(no_answer="reset", carried_out=True), Fault(answer=Answer(502, {})))
    reply(admin_client, asked)
    assert sent_turn().state == "sent"
    assert len([each for each in graph.sent if each["type"] == "image"]) == 1


def test_a_message_whose_outcome_is_unknown_is_not_sent_again(
    admin_client: Client, asked: World, graph: GraphServer
) -> None:
    graph.fail_next(Fault(), Fault(no_answer="reset", carried_out=True))
    reply(admin_client, asked)
    asked.work()
    turn = sent_turn()
    assert (turn.state, turn.parts.get().state) == ("sending", "sending")
    assert len([each for each in graph.sent if each["type"] == "image"]) == 1


def test_a_refused_file_ends_as_failed_and_is_sent_again_by_staff(
    admin_client: Client, asked: World
) -> None:
    asked.provider.fail_next(SendError("no", permanent=True))
    reply(admin_client, asked)
    turn = sent_turn()
    assert turn.state == "failed"
    admin_client.post(f"/admin/sessions_app/turn/{turn.pk}/rerun/")
    asked.work()
    turn.refresh_from_db()
    assert turn.state == "sent"
    (file,) = asked.provider.sent_files.values()
    assert file.content == PNG


def forgotten(world: World, message: Message, run_on_commit: Any) -> Any:
    dependencies = ForgetDependencies(
        embedder=WordLlamaEmbedder(), chat_memory=world.rules.chat_memory
    )
    with run_on_commit(execute=True):
        return object_forget(kind="message", object_id=message.pk, dependencies=dependencies)


def test_forgetting_the_message_takes_the_file_and_counts_it(
    admin_client: Client,
    asked: World,
    folder: Path,
    django_capture_on_commit_callbacks: Any,
) -> None:
    reply(admin_client, asked, name="azalea.png", text="the azalea in the hall")
    message = Message.objects.get(kind="image")
    receipt = forgotten(asked, message, django_capture_on_commit_callbacks)
    assert receipt.swept["media files"] == 1
    assert list(folder.glob("*")) == []
    assert "azalea" not in str(list(Turn.objects.values())) + str(list(Message.objects.values()))


def test_a_file_that_was_forgotten_before_it_went_out_is_not_sent(
    admin_client: Client, asked: World, django_capture_on_commit_callbacks: Any
) -> None:
    reply(admin_client, asked, text="the azalea in the hall", work=False)
    message = Message.objects.get(kind="image")
    forgotten(asked, message, django_capture_on_commit_callbacks)
    asked.work()
    assert asked.provider.sent_files == {}
    assert (
        "not stored any more"
        in admin_client.get(f"/admin/sessions_app/turn/{sent_turn().pk}/change/").content.decode()
    )


def test_it_is_removed_after_the_retention_of_files(
    admin_client: Client, asked: World, folder: Path, settings: Any
) -> None:
    settings.MEDIA_RETENTION_DAYS = 3
    reply(admin_client, asked)
    MediaFile.objects.update(created_at=timezone.now() - timedelta(days=2))
    assert drop_old_media() == 0
    MediaFile.objects.update(created_at=timezone.now() - timedelta(days=4))
    assert drop_old_media() == 1
    assert list(folder.glob("*")) == []
    assert "removed after its retention" in conversation(admin_client, asked)


def test_where_no_files_are_kept_it_stays_until_it_is_sent(
    admin_client: Client, asked: World, settings: Any
) -> None:
    settings.MEDIA_RETENTION_DAYS = 0
    reply(admin_client, asked, work=False)
    drop_old_media()
    asked.work()
    assert len(asked.provider.sent_files) == 1
    MediaFile.objects.update(created_at=timezone.now() - timedelta(days=1, minutes=1))
    assert drop_old_media() == 1


def test_where_memory_is_off_it_is_kept_until_it_is_sent(
    admin_client: Client, asked: World, folder: Path
) -> None:
    Chat.objects.update(memory_enabled=False)
    reply(admin_client, asked, name="azalea.png", text="the azalea", work=False)
    assert not Message.objects.filter(kind="image").exists()
    assert ordered_files_remove(FolderStorage(folder)) == 0
    asked.work()
    ((part, file),) = asked.provider.sent_files.items()
    assert (file.filename, file.content) == ("azalea.png", PNG)
    assert asked.provider.sent[-1].text == "the azalea"
    assert ordered_files_remove(FolderStorage(folder)) == 1
    assert list(folder.glob("*")) == []
    assert not MediaFile.objects.exists()
    assert "azalea" not in str(list(Turn.objects.filter(by_hand=True).values()))
    assert not OutboundPart.objects.exclude(content="").exists()
