"""Memories out of the admin and into it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.memories import transfer_pages
from tests.remembering import remember

pytestmark = pytest.mark.django_db
LIST = "/admin/memories_app/memory/"
IMPORT = f"{LIST}import/"


def lines(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("application/x-ndjson")
    assert "memories.ndjson" in answer["Content-Disposition"]
    parts: Iterable[bytes] = answer.streaming_content
    return [json.loads(line) for line in b"".join(parts).splitlines()]


def upload(client: Client, content: bytes, **more: str) -> Any:
    return client.post(
        IMPORT, {"file": SimpleUploadedFile("m.ndjson", content), "vectors": "on", **more}
    )


def figures(answer: Any) -> tuple[int, int, int]:
    report = answer.context["report"]
    return report.created, report.duplicates, len(report.errors)


# Export


def test_what_the_filters_find_is_exported_and_audited(admin_client: Client) -> None:
    remember("Dana likes tea", tags=("a",))
    remember("Yossi likes coffee", visibility="public")
    assert {line["content"] for line in lines(admin_client.post(f"{LIST}export/"))} == {
        "Dana likes tea",
        "Yossi likes coffee",
    }
    (only,) = lines(admin_client.post(f"{LIST}export/?visibility__exact=public"))
    assert only["content"] == "Yossi likes coffee"
    events = AuditEvent.objects.filter(action="export").order_by("id")
    assert [(event.actor, event.details["memories"]) for event in events] == [
        ("admin", 2),
        ("admin", 1),
    ]


def test_what_a_search_finds_is_exported(admin_client: Client) -> None:
    remember("Dana likes tea")
    remember("The office is in Haifa")
    found = lines(admin_client.post(f"{LIST}export/?q=Where+is+the+office"))
    assert "The office is in Haifa" in {line["content"] for line in found}
    page = admin_client.get(LIST, {"q": "office"}).content.decode()
    assert f"{LIST}export/?q=office" in page


def test_what_is_chosen_is_exported(admin_client: Client) -> None:
    chosen = remember("Dana likes tea")
    remember("Yossi likes coffee")
    posted = {"action": "export_selected", "_selected_action": [str(chosen.pk)]}
    (only,) = lines(admin_client.post(LIST, posted))
    assert only["memory_id"] == str(chosen.pk)


def test_who_may_change_but_not_export(client: Client) -> None:
    memory = remember("Dana likes tea")
    user = get_user_model().objects.create_user("changer", is_staff=True)
    codenames = ["view_memory", "change_memory"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    assert client.post(f"{LIST}export/").status_code == 403
    posted = {"action": "export_selected", "_selected_action": [str(memory.pk)]}
    assert "Content-Disposition" not in client.post(LIST, posted).headers
    assert client.get(IMPORT).status_code == 403
    assert upload(client, b'{"content": "x"}').status_code == 403
    assert not AuditEvent.objects.filter(action="export").exists()
    assert Memory.objects.count() == 1


# Import


def test_what_was_exported_comes_in_again_once(admin_client: Client) -> None:
    remember("Dana likes tea", tags=("a",), visibility="public")
    exported = b"\n".join(
        json.dumps(line).encode() for line in lines(admin_client.post(f"{LIST}export/"))
    )
    assert figures(upload(admin_client, exported)) == (0, 1, 0)
    Memory.objects.all().delete()
    assert figures(upload(admin_client, exported)) == (1, 0, 0)
    memory = Memory.objects.get()
    assert (memory.tags, memory.visibility) == (["a"], "public")
    assert memory.embeddings.count() == 1
    assert AuditEvent.objects.filter(action="memory.import", actor="admin").exists()


def test_lines_that_can_not_be_used_are_told_by_number(admin_client: Client) -> None:
    answer = upload(
        admin_client,
        b'{"content": "Dana likes tea"}\n\nnot json\n{"content": ""}\n\xff\xfe\n'
        b'{"content": "<script>alert(1)</script>", "visibility": "<b>all</b>"}\n',
    )
    assert figures(answer) == (1, 0, 4)
    assert [error["line"] for error in answer.context["errors"]] == [3, 4, 5, 6]
    shown = answer.content.decode()
    assert "<b>all" not in shown
    assert Memory.objects.get().visibility == "owner"


def test_without_vectors_none_are_made(admin_client: Client) -> None:
    answer = admin_client.post(
        IMPORT, {"file": SimpleUploadedFile("m.ndjson", b'{"content": "Dana likes tea"}')}
    )
    assert figures(answer) == (1, 0, 0)
    assert Memory.objects.get().embeddings.count() == 0


def test_no_file_an_empty_one_and_one_that_is_too_large_are_refused(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert admin_client.post(IMPORT, {}).status_code == 400
    empty = upload(admin_client, b"")
    assert empty.status_code == 400
    assert "This file is empty." in empty.content.decode()
    monkeypatch.setattr(transfer_pages, "MAX_BYTES", 10)
    large = upload(admin_client, b'{"content": "Dana likes tea"}')
    assert large.status_code == 400
    assert "The file is larger than 10" in large.content.decode()
    assert not Memory.objects.exists()


def test_where_no_vectors_can_be_made_it_says_what_to_do(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        model_id = "broken"
        dimensions = 4

        def embed(self, texts: list[str]) -> list[list[float]]:
            raise EmbedderError("It is down.", permanent=False)

        def coverage(self, text: str) -> float:
            return 1.0

    monkeypatch.setattr("sessions_app.memories.transfer_pages.embedder", Broken)
    answer = upload(admin_client, b'{"content": "Dana likes tea"}')
    assert answer.status_code == 400
    assert "Import the file again later, or without vectors" in answer.content.decode()
