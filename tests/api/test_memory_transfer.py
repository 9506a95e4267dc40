"""Export and import of memories over HTTP."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.errors import BodyTooLarge
from sessions_app.memories.presentation import LinesParser
from sessions_app.models import Chat
from tests.api.calling import Api, api_with, error_of

pytestmark = pytest.mark.django_db
CHAT, OTHER = "15550100123@c.us", "15550100456@c.us"
NDJSON = "application/x-ndjson"


@pytest.fixture
def three(api: Api) -> list[str]:
    facts: list[dict[str, Any]] = [
        {"content": " We open at 9\n", "visibility": "public"},
        {"content": "Dana likes tea", "whatsapp_chat": CHAT},
        {"content": "שלום עולם", "whatsapp_chat": OTHER, "metadata": {"a": "🙂"}},
    ]
    assert api.post("memories/batch/", {"memories": facts}).status_code == 201
    return [each["content"] for each in facts]


def exported(api: Api, query: str = "", **headers: str) -> bytes:
    answer = api.get(f"memories/export/{query}", **headers)
    assert answer.status_code == 200
    assert answer.streaming
    assert answer["Content-Type"].startswith(NDJSON)
    return b"".join(answer.streaming_content)


def contents(lines: bytes) -> list[str]:
    return [json.loads(line)["content"] for line in lines.splitlines()]


def imported(api: Api, lines: bytes, **headers: str) -> Any:
    return api.call("POST", "memories/import/", lines, Content_Type=NDJSON, **headers)


def test_an_export_is_redacted_on_request(api: Api) -> None:
    fact = {"content": "Her number is +44 7700 900123", "whatsapp_chat": CHAT}
    assert api.post("memories/batch/", {"memories": [fact]}).status_code == 201
    lines = exported(api, "?redact=true")
    line = json.loads(lines)
    assert (line["redacted"], line["content"]) == (True, "Her number is [phone]")
    assert line["whatsapp_chat"] == "[email]"
    assert line["memory_id"] == str(Memory.objects.get().pk)
    assert "redacted" in api.get("memories/export/?redact=true")["Content-Disposition"]
    assert AuditEvent.objects.filter(action="export", details__redacted=True).exists()
    assert "redacted" not in json.loads(exported(api))
    # A redacted line is not taken for the memory; vectors would tell what it leaves out.
    (error,) = imported(api, lines).json()["errors"]
    assert "redacted" in error["detail"]
    assert api.get("memories/export/?redact=true&embeddings=true").status_code == 400


def test_what_is_exported_can_be_imported_again_byte_for_byte(api: Api, three: list[str]) -> None:
    lines = exported(api, "?embeddings=true")
    assert sorted(contents(lines)) == sorted(three)
    vectors = MemoryEmbedding.objects.count()
    assert vectors
    before = {memory.pk: memory.content for memory in Memory.objects.all()}
    assert imported(api, lines).json() == {"created": 0, "duplicates": 3, "errors": []}
    Memory.objects.all().delete()
    assert imported(api, lines).json() == {"created": 3, "duplicates": 0, "errors": []}
    assert {memory.pk: memory.content for memory in Memory.objects.all()} == before
    assert MemoryEmbedding.objects.count() == vectors
    assert exported(api, "?embeddings=true") == lines
    assert b"+00:00" not in lines  # All times of the API end in Z.
    assert AuditEvent.objects.filter(action="export", actor_kind="api").count() == 2


def test_a_vector_of_another_size_than_its_models_is_made_anew(api: Api, three: list[str]) -> None:
    lines = exported(api, "?embeddings=true")
    memories = [json.loads(line) for line in lines.splitlines()]
    whole = [vector for memory in memories for vector in memory["embeddings"]]
    assert whole
    for each in whole:
        each["vector"] = each["vector"][1:]
    Memory.objects.all().delete()
    cut = "\n".join(map(json.dumps, memories)).encode()
    assert imported(api, cut).json() == {"created": 3, "duplicates": 0, "errors": []}
    assert exported(api, "?embeddings=true") == lines


def test_an_export_comes_in_on_a_server_without_its_chats(api: Api, three: list[str]) -> None:
    lines = exported(api)
    Memory.objects.all().delete()
    Chat.objects.all().delete()
    assert imported(api, lines).json() == {"created": 3, "duplicates": 0, "errors": []}
    assert exported(api) == lines


def test_an_export_is_narrowed_and_embeddings_come_on_request(api: Api, three: list[str]) -> None:
    assert contents(exported(api, f"?whatsapp_chat={CHAT}")) == ["Dana likes tea"]
    assert b"embeddings" not in exported(api)
    assert exported(api, Accept=NDJSON) == exported(api)
    error_of(api.get("memories/export/?whatsapp_chat=1@c.us"), 404)
    error_of(api.get("memories/export/?embeddings=perhaps"), 400)
    error_of(api.get("memories/export/?colour=red"), 400)


def test_an_export_has_lines_of_json_and_no_other_format(api: Api, three: list[str]) -> None:
    assert exported(api, "?format=ndjson") == exported(api)
    error = error_of(api.get("memories/export/?format=json"), 400)
    assert (error["code"], error["attr"]) == ("invalid_choice", "format")
    assert error["detail"] == "There is no such format here. There are: ndjson."
    # A program that accepts JSON alone is sent the lines; its errors are JSON.
    assert exported(api, Accept="application/json") == exported(api)
    wrong = api.get("memories/export/?colour=red", Accept="application/json")
    assert wrong["Content-Type"].startswith("application/json")


def test_a_bound_token_exports_its_chats_alone_and_imports_nothing(three: list[str]) -> None:
    bound = api_with(chat_ids=[Chat.objects.get(whatsapp_chat=CHAT).pk])
    assert contents(exported(bound)) == ["Dana likes tea"]
    error_of(bound.get(f"memories/export/?whatsapp_chat={OTHER}"), 404)
    error_of(imported(bound, b"{}"), 403)


def test_lines_that_cannot_be_used_are_told_and_the_rest_goes_in(api: Api) -> None:
    good = json.dumps({"content": "We open at 9", "visibility": "public"}).encode()
    lines = [
        good, b"", b"{", b"\xff", b"[]", b'{"content": "x", "visibility": "chat"}',
        b'{"content": "a\\u0000b", "visibility": "public"}', good,
        b'{"content": "x", "visibility": "all", "whatsapp_chat": "1@c.us"}',
    ]  # fmt: skip
    report = imported(api, b"\n".join(lines)).json()
    assert (report["created"], report["duplicates"]) == (1, 1)
    assert [each["line"] for each in report["errors"]] == [3, 4, 5, 6, 7, 9]
    assert all(each["detail"] for each in report["errors"])
    assert Memory.objects.count() == 1
    assert imported(api, b"").json() == {"created": 0, "duplicates": 0, "errors": []}


def test_lines_of_a_chat_without_memory_are_refused(api: Api) -> None:
    api.post("sessions/", {"whatsapp_chat": "15550100123@c.us"})
    Chat.objects.update(memory_enabled=False)
    line = {"content": "x", "visibility": "chat", "whatsapp_chat": "15550100123@c.us"}
    report = imported(api, json.dumps(line).encode()).json()
    assert (report["created"], len(report["errors"])) == (0, 1)
    assert report["errors"][0]["detail"] == "memory is off in its chat"


def test_an_import_that_is_too_large_is_refused() -> None:
    small = type("Small", (LinesParser,), {"largest": 10})()
    with pytest.raises(BodyTooLarge):
        small.parse(BytesIO(b"x" * 11))


def in_chunks(api: Api, path: str, body: bytes, **environ: Any) -> Any:
    """As a server passes on a body that came without its length."""
    return api.client.generic(
        "POST", f"/api/v1/{path}", headers=api.headers,
        **{"CONTENT_TYPE": NDJSON, "HTTP_TRANSFER_ENCODING": "chunked",
           "wsgi.input": BytesIO(body), **environ},
    )  # fmt: skip


def test_a_body_in_chunks_is_read_or_refused_but_never_taken_for_an_empty_one(api: Api) -> None:
    line = b'{"content": "We open at 9", "visibility": "public"}'
    whole: dict[str, Any] = {"wsgi.input_terminated": True}
    assert in_chunks(api, "memories/import/", line, **whole).json()["created"] == 1
    error_of(in_chunks(api, "memories/import/", line), 411)
    said = in_chunks(api, "memories/", line, **whole, CONTENT_TYPE="application/json")
    assert said.status_code == 200
    large = b" " * (3 * 1024 * 1024 + 1)
    error_of(in_chunks(api, "memories/", large, **whole, CONTENT_TYPE="application/json"), 413)
