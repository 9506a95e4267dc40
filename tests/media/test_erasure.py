"""Files are gone when an erasure is answered, and its receipt counts them."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.test import Client

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.leases import leases_sweep
from sessions_app.forgetting.dependencies import build_forget_dependencies
from sessions_app.forgetting.runs import preview_make, run_confirm, run_draft, run_work
from sessions_app.models import ForgetReceipt, ForgetRun, MediaFile, Turn
from sessions_app.sweeps import leased_kinds
from tests.api.calling import Api, api_with
from tests.loopback.s3_server import S3Server
from tests.media.conftest import PNG, Files
from tests.media.test_quota import fetch_all, say_picture
from tests.world import CLIENT, OTHER_CLIENT

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(transactional_db: None) -> Api:
    return api_with()


@pytest.fixture
def kept(files: Files) -> Iterator[Files]:
    """Two files of a client, and one of another."""
    for by in (CLIENT, CLIENT, OTHER_CLIENT):
        say_picture(files, by)
    fetch_all(files)
    assert len(files.kept()) == 3
    yield files
    others = MediaFile.objects.get(message__chat=files.world.chat(OTHER_CLIENT))
    assert files.kept() == {str(others.pk): PNG}


def test_of_a_session(kept: Files, api: Api) -> None:
    session = kept.world.session(CLIENT)
    receipt = api.delete(f"sessions/{session.pk}/").json()
    assert receipt["swept"]["media files"] == 2
    assert receipt["left"] == []
    assert len(kept.kept()) == 1


def test_of_single_messages(kept: Files, api: Api) -> None:
    for message in kept.world.messages(CLIENT):
        if message.media:
            lying = len(kept.kept())
            receipt = api.delete(f"sessions/{message.session_id}/messages/{message.pk}/").json()
            assert receipt["swept"]["media files"] == 1
            assert len(kept.kept()) == lying - 1


def test_of_all_messages_of_a_session(kept: Files, api: Api) -> None:
    session = kept.world.session(CLIENT)
    receipt = api.delete(f"sessions/{session.pk}/messages/").json()
    assert receipt["swept"]["media files"] == 2


def test_of_a_chat_with_a_file_that_staff_send_without_a_message(kept: Files, api: Api) -> None:
    chat = kept.world.chat(CLIENT)
    turn = Turn.objects.filter(chat=chat).first()
    name = uuid4()
    MediaFile.objects.create(
        media_id=name, turn=turn, state="stored", content_type="image/png", size=len(PNG)
    )
    path = kept.storage.incoming / "put"
    path.write_bytes(PNG)
    kept.storage.put(str(name), path)
    path.unlink(missing_ok=True)
    receipt = api.delete(f"chats/{CLIENT}/").json()
    assert receipt["swept"]["media files"] == 3


def test_of_a_chat_by_staff(kept: Files) -> None:
    run = run_draft(chosen=[("chat", kept.world.chat(CLIENT).pk)], asked_by="dana")
    run_confirm(run_id=run.pk, actor=Actor("staff", name="dana"), enqueue=lambda _run: None)
    run_work(run_id=run.pk, dependencies=build_forget_dependencies(), enqueue=lambda _run: None)
    assert ForgetRun.objects.get().state == "done"
    assert ForgetReceipt.objects.get().swept["media files"] == 2


def test_a_preview_removes_nothing(files: Files) -> None:
    say_picture(files)
    fetch_all(files)
    chosen = [("chat", files.world.chat(CLIENT).pk)]
    preview = preview_make(chosen=chosen, dependencies=build_forget_dependencies())
    assert preview.tables["media files"] == 1
    assert len(files.kept()) == 1


def test_a_bucket_that_is_away_is_named_in_the_receipt_and_emptied_later(
    in_bucket: Files, server: S3Server, api: Api, admin_client: Client
) -> None:
    say_picture(in_bucket)
    fetch_all(in_bucket)
    server.refuse_next(503, "SlowDown", times=2)
    receipt = api.delete(f"chats/{CLIENT}/").json()
    assert receipt["swept"]["media files"] == 1
    assert [each["what"] for each in receipt["left"]] == ["media files"]
    assert len(server.objects) == 1
    address = f"receipts/{receipt['receipt_id']}/"
    assert api.get(address).json() == receipt
    page = f"/admin/sessions_app/forgetreceipt/{ForgetReceipt.objects.get().pk}/change/"
    assert "They go by themselves once" in admin_client.get(page).content.decode()
    leases_sweep(list(leased_kinds()))
    assert server.objects == {}
    assert api.get(address).json()["left"] == []
