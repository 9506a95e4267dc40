"""Documents over HTTP: PDF, Word and text files, uploaded as forms and read by a worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT
from django_q.models import OrmQ

from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.documents.sniffing import DOCX, PDF
from sessions_app.models import Chat
from sessions_app.tasks import read_document
from tests.api.calling import JSON, Api, api_with, error_of, form_of
from tests.documents import files

pytestmark = pytest.mark.django_db

CLIENT, OTHER_CLIENT = "15550100123@c.us", "15550100124@c.us"
TERMS = b"TestCorp pays in 30 days."
MEGABYTE = 1024 * 1024


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "documents"


def read(answer: Any, api: Api) -> Any:
    """What becomes of an upload, once a worker has read it."""
    assert answer.status_code in (200, 201), answer.content
    document_id = answer.json()["document_id"]
    read_document(document_id)
    return api.get(f"files/{document_id}/").json()


def recalled(api: Api, query: str, **where: str) -> list[str]:
    found = api.post("memories/recall/", {"query": query, **where}).json()["results"]
    return [each["content"] for each in found]


@pytest.mark.parametrize(
    ("content", "name", "media_type", "pages"),
    [
        (files.pdf("TestCorp pays in 30 days.", "Page two.", title="Terms"), "terms.pdf", PDF, 2),
        (files.docx("TestCorp pays in 30 days.", title="Terms"), "terms.docx", DOCX, None),
    ],
)
def test_a_file_is_read_into_memories(
    content: bytes, name: str, media_type: str, pages: int | None, api: Api
) -> None:
    answer = api.upload(content, name, {"whatsapp_chat": CLIENT})
    assert answer.status_code == 201
    made = answer.json()
    path = f"files/{made['document_id']}/"
    assert answer["Location"] == f"/api/v1/{path}"
    assert (made["state"], made["passages"], made["error"]) == ("received", 0, None)
    assert api.get(path, If_None_Match=answer["ETag"]).status_code == 304
    found = read(answer, api)
    assert (found["state"], found["name"], found["title"]) == ("ready", name, "Terms")
    assert (found["media_type"], found["pages"]) == (media_type, pages)
    assert (found["visibility"], found["whatsapp_chat"]) == ("chat", CLIENT)
    assert found["size"] == len(content)
    assert found["passages"] == Memory.objects.count() > 0
    assert api.get(path, If_None_Match=answer["ETag"]).status_code == 200
    assert any("30 days" in text for text in recalled(api, "When does TestCorp pay?"))
    event = AuditEvent.objects.get(action="document.receive")
    assert (event.actor_kind, event.actor) == ("api", "tests")


def test_a_worker_is_told_of_an_upload(api: Api, django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        made = api.upload(TERMS, "terms.txt").json()
    assert (made["document_id"],) in [queued.task["args"] for queued in OrmQ.objects.all()]


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (files.encrypted_pdf("password"), "secret.pdf", "encrypted"),
        (files.pdf("TestCorp")[:80], "cut.pdf", "damaged"),
        (files.docx("TestCorp")[:-200], "cut.docx", "damaged"),
        (b"MZ\x90\x00\x03\x00\x00\x00", "offer.pdf", "unknown_type"),
        (b" \n", "spaces.txt", "empty"),
        (files.pdf(""), "scan.pdf", "no_text"),
    ],
)
def test_an_odd_file_says_why(content: bytes, name: str, code: str, api: Api, folder: Path) -> None:
    found = read(api.upload(content, name), api)
    assert (found["state"], found["error"]["code"], found["error"]["attr"]) == (
        *("failed", code),
        "file",
    )
    assert found["error"]["detail"].endswith(".")
    assert not Memory.objects.exists()
    assert list(folder.iterdir()) == []
    # What failed may be tried again, and is the same document.
    again = api.upload(content, name)
    assert (again.status_code, again.json()["state"]) == (200, "received")
    assert again.json()["document_id"] == found["document_id"]
    assert [row["document_id"] for row in api.walk("files/?state=received")] == [
        found["document_id"]
    ]
    assert api.walk("files/?state=failed&state=ready") == []


def test_what_is_no_file_is_refused_at_once(api: Api, settings: Any) -> None:
    settings.DOCUMENT_MAX_MB = 1
    empty = error_of(api.upload(b"", "empty.txt"), 400)
    assert (empty["code"], empty["attr"]) == ("empty", "file")
    assert error_of(api.upload(b"x" * (MEGABYTE + 1), "large.txt"), 413)["code"] == "body_too_large"
    error_of(api.upload(b"x" * (3 * MEGABYTE), "larger.txt"), 413)
    form = MULTIPART_CONTENT
    whole = form_of(TERMS, "terms.txt")
    wrong = {
        "a field": whole.replace(b'name="file"; filename="terms.txt"', b'name="file"'),
        "another name": whole.replace(b'name="file"', b'name="files"'),
        "cut off": whole[:-20],
        "nothing": b"",
        "no form": b"TestCorp",
        "twice": whole.replace(f"--{BOUNDARY}--".encode(), whole),
        "a NUL": form_of(TERMS, "terms.txt", {"whatsapp_chat": "a\x00b"}),
        "no chat": form_of(TERMS, "terms.txt", {"whatsapp_chat": "my chat"}),
        "visibility": form_of(TERMS, "terms.txt", {"visibility": "everybody"}),
        "chat of none": form_of(TERMS, "terms.txt", {"visibility": "chat"}),
    }
    for kind, body in wrong.items():
        answer = api.call("POST", "files/", body, Content_Type=form)
        assert error_of(answer, 400)["detail"], kind
    error_of(api.call("POST", "files/", whole, Content_Type="multipart/form-data"), 400)
    for kind in (JSON, "application/x-www-form-urlencoded", PDF):
        refused = error_of(api.call("POST", "files/", b"{}", Content_Type=kind), 415)
        assert refused["detail"].endswith("Send multipart/form-data.")
    assert not SourceDocument.objects.exists()
    assert not Chat.objects.exists()


def test_the_same_call_with_a_key_has_one_effect(api: Api) -> None:
    first = api.upload(TERMS, "terms.txt", Idempotency_Key="k-1")
    assert first.status_code == 201
    read(first, api)
    again = api.upload(TERMS, "terms.txt", Idempotency_Key="k-1")
    assert again.content == first.content
    assert again["Idempotent-Replayed"] == "true"
    # A longer file is another one, under the same name, too.
    for content, name in ((TERMS + b"!", "terms.txt"), (TERMS, "other.txt")):
        error_of(api.upload(content, name, Idempotency_Key="k-1"), 422)
    known = api.upload(TERMS, "copy.txt")
    assert (known.status_code, known.json()["state"]) == (200, "ready")
    assert "Location" not in known
    assert SourceDocument.objects.count() == 1


def test_a_document_is_forgotten_with_its_memories(api: Api) -> None:
    answer = api.upload(TERMS, "terms.txt", {"whatsapp_chat": CLIENT})
    path = f"files/{answer.json()['document_id']}/"
    read(answer, api)
    # It was read since.
    error_of(api.delete(path, If_Match=answer["ETag"]), 412)
    assert Memory.objects.count() == 1
    current = api.get(path)["ETag"]
    receipt = api.delete(path, If_Match=current, Idempotency_Key="d-1")
    assert receipt.status_code == 200
    assert (receipt.json()["kind"], receipt.json()["probe"]) == ("document", "absent")
    assert api.delete(path, If_Match=current, Idempotency_Key="d-1").content == receipt.content
    error_of(api.get(path), 404)
    error_of(api.delete(path), 404)
    assert not Memory.objects.exists()
    (found,) = api.walk(f"receipts/?whatsapp_chat={CLIENT}&kind=document")
    assert found["receipt_id"] == receipt.json()["receipt_id"]


def test_a_bound_token_reaches_the_documents_of_its_chats_alone(api: Api) -> None:
    ids = {
        where: api.upload(TERMS, "terms.txt", {"whatsapp_chat": where}).json()["document_id"]
        for where in (CLIENT, OTHER_CLIENT)
    }
    own_chat = Chat.objects.get(whatsapp_chat=CLIENT)
    of_owner = {"whatsapp_chat": CLIENT, "visibility": "owner"}
    ids["owner"] = api.upload(TERMS, "terms.txt", of_owner).json()["document_id"]
    ids["nobody"] = api.upload(TERMS, "terms.txt").json()["document_id"]
    assert len(api.walk("files/?limit=2")) == 4
    bound = api_with(chat_ids=[own_chat.pk])
    assert [row["document_id"] for row in bound.walk("files/")] == [ids[CLIENT]]
    assert [row["document_id"] for row in api.walk(f"files/?whatsapp_chat={OTHER_CLIENT}")] == [
        ids[OTHER_CLIENT]
    ]
    for where in (OTHER_CLIENT, "owner", "nobody"):
        for method in ("GET", "DELETE"):
            error_of(bound.call(method, f"files/{ids[where]}/"), 404)
    # It needn't name its chat, and writes for no other.
    mine = bound.upload(b"We open at 9.", "hours.txt").json()
    assert (mine["visibility"], mine["whatsapp_chat"]) == ("chat", CLIENT)
    for visibility in ("public", "owner"):
        error_of(bound.upload(TERMS, "terms.txt", {"visibility": visibility}), 403)
    error_of(bound.upload(TERMS, "terms.txt", {"whatsapp_chat": OTHER_CLIENT}), 404)
    error_of(bound.upload(TERMS, "terms.txt", {"whatsapp_chat": "15550100999@c.us"}), 404)
    assert SourceDocument.objects.count() == 5
    assert bound.delete(f"files/{mine['document_id']}/").status_code == 200


@pytest.mark.parametrize("off", [{"ENABLE_MEMORY_SYSTEM": False}, {"LONGTERM_ENABLED": False}])
def test_without_memory_no_file_is_taken(
    off: dict[str, bool], api: Api, settings: Any, folder: Path
) -> None:
    for name, value in off.items():
        setattr(settings, name, value)
    refused = error_of(api.upload(TERMS, "terms.txt", {"whatsapp_chat": CLIENT}), 403)
    assert refused["code"] == "memory_disabled"
    assert not SourceDocument.objects.exists()
    assert not Chat.objects.exists()
    assert not folder.exists()


def test_staff_upload_with_their_session_if_they_may_in_the_admin(db: None) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(staff)
    client.cookies["csrftoken"] = token = "a" * 32
    by_session = Api(None, client)

    def upload(**headers: str) -> Any:
        return by_session.upload(TERMS, "terms.txt", {"whatsapp_chat": CLIENT}, **headers)

    rights = ["change_chat", "change_memory", "view_message", "view_memory"]
    staff.user_permissions.set(Permission.objects.filter(codename__in=rights))
    error_of(upload(X_CSRFToken=token), 403)
    staff.user_permissions.set(
        Permission.objects.filter(codename__in=[*rights, "add_sourcedocument"])
    )
    error_of(upload(), 403)
    answer = upload(X_CSRFToken=token)
    assert answer.status_code == 201, answer.content
    event = AuditEvent.objects.get(action="document.receive")
    assert (event.actor_kind, event.actor) == ("staff", "staff")
