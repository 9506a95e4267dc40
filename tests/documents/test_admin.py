"""Staff upload documents, see what became of them, and forget them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django_q.models import OrmQ

from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import ForgetRun
from sessions_app.tasks import read_document, run_forgetting, sweep_work
from tests.documents import files
from tests.world import CLIENT, World

LIST = reverse("admin:memories_app_sourcedocument_changelist")
ADD = reverse("admin:memories_app_sourcedocument_add")
Upload = Callable[..., Any]


@pytest.fixture
def upload(
    admin_client: Client, settings: Any, tmp_path: Path, django_capture_on_commit_callbacks: Any
) -> Upload:
    settings.DATA_DIR = tmp_path

    def uploading(content: bytes, name: str = "terms.pdf", **fields: str) -> Any:
        data = {"file": SimpleUploadedFile(name, content), "visibility": "owner", **fields}
        with django_capture_on_commit_callbacks(execute=True):
            return admin_client.post(ADD, data, follow=True)

    return uploading


def test_an_upload_is_read_and_its_passages_shown(upload: Upload, admin_client: Client) -> None:
    answer = upload(files.pdf("TestCorp pays in 30 days."))
    assert answer.redirect_chain[-1][0] == LIST
    document = SourceDocument.objects.get()
    assert (document.state, document.uploaded_by) == ("received", "admin")
    assert (str(document.pk),) in [queued.task["args"] for queued in OrmQ.objects.all()]

    assert read_document(str(document.pk)) == "ready"

    page = admin_client.get(
        reverse("admin:memories_app_sourcedocument_change", args=[document.pk])
    ).content.decode()
    assert "TestCorp pays in 30 days." in page
    listed = admin_client.get(
        reverse("admin:memories_app_memory_changelist"),
        {"document__document_id__exact": str(document.pk)},
    )
    assert "TestCorp pays in 30 days." in listed.content.decode()
    assert "1 document" in admin_client.get(LIST).content.decode()
    event = AuditEvent.objects.get(action="document.receive")
    assert (event.actor_kind, event.actor) == ("staff", "admin")


def test_the_same_file_again_is_told(upload: Upload) -> None:
    upload(b"TestCorp pays in 30 days.", name="terms.txt")
    read_document(str(SourceDocument.objects.get().pk))
    again = upload(b"TestCorp pays in 30 days.", name="copy.txt")
    assert "This file was read before." in again.content.decode()
    assert SourceDocument.objects.count() == 1


def test_a_file_that_cannot_be_read_shows_the_reason(upload: Upload, admin_client: Client) -> None:
    upload(files.encrypted_pdf("password"))
    document = SourceDocument.objects.get()
    assert read_document(str(document.pk)) == "failed"
    page = admin_client.get(reverse("admin:memories_app_sourcedocument_change", args=[document.pk]))
    assert "The document is protected by a password." in page.content.decode()


def test_a_document_of_a_chat(upload: Upload, world: World) -> None:
    world.say(CLIENT, "hello")
    upload(b"Their own terms.", name="terms.txt", visibility="chat", whatsapp_chat=CLIENT)
    assert SourceDocument.objects.get().chat_id == world.chat(CLIENT).pk


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"visibility": "chat"}, "visible in one chat needs it"),
        ({"whatsapp_chat": "15550100999@c.us"}, "No contact has this name or number."),
        ({"visibility": "everybody"}, "Select a valid choice"),
    ],
)
def test_a_wrong_upload_is_refused(fields: dict[str, str], told: str, upload: Upload) -> None:
    assert told in upload(b"text", **fields).content.decode()
    assert not SourceDocument.objects.exists()


def test_a_file_that_is_too_large_is_refused(upload: Upload, settings: Any) -> None:
    settings.DOCUMENT_MAX_MB = 1
    assert "larger than 1.0" in upload(b"x" * (1024 * 1024 + 1)).content.decode()
    assert not SourceDocument.objects.exists()


def test_forgetting_asks_first(upload: Upload, admin_client: Client) -> None:
    upload(b"TestCorp pays in 30 days.", name="terms.txt")
    document = SourceDocument.objects.get()
    read_document(str(document.pk))
    chosen = {"action": "forget_selected", "_selected_action": [str(document.pk)]}

    asked = admin_client.post(LIST, chosen, follow=True)
    page = asked.getvalue().decode()
    assert "Restoring is impossible" in page
    assert "TestCorp pays in 30 days." in page
    assert Memory.objects.count() == 1

    run = ForgetRun.objects.get()
    admin_client.post(
        reverse("admin:sessions_app_forgetrun_confirm", args=[run.pk]), {"typed": "FORGET"}
    )
    run_forgetting(str(run.pk))
    assert not Memory.objects.exists()
    assert AuditEvent.objects.get(action="document.forget").actor == "admin"
    assert read_document(str(document.pk)).startswith("SourceDocument matching query")


def test_the_sweep_enqueues_what_waits(upload: Upload, db: None) -> None:
    upload(b"TestCorp pays in 30 days.", name="terms.txt")
    SourceDocument.objects.update(created_at="2026-01-01T00:00:00Z")
    OrmQ.objects.all().delete()
    assert sweep_work()["documents"] == 1
    assert OrmQ.objects.count() == 1
