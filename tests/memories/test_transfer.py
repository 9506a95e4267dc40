"""Memories out as lines of JSON, and in again."""

from __future__ import annotations

import json
import os
import tracemalloc
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from hypothesis import HealthCheck, given, settings, strategies as st

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory, MemoryEmbedding
from memories_app.store.change import memory_pin
from memories_app.store.remember import memories_remember
from memoryproject.foundation.audit.audit_events import COMMAND_LINE, SYSTEM
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.text.characters import shows_nothing
from memoryproject.foundation.text.uuids import EARLIEST, LATEST
from sessions_app.memories.transfer import ImportReport, memories_export, memories_import
from sessions_app.models import Chat
from tests import remembering
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.remembering import memory_update

pytestmark = pytest.mark.django_db
EMBEDDER = HashingEmbedder(16)
CHAT, OTHER_CHAT = "15550100123@c.us", "15550100456@c.us"


@pytest.fixture
def chat() -> Chat:
    return Chat.objects.create(whatsapp_chat=CHAT, provider="cloud")


def remember(content: str, **changes: Any) -> Memory:
    return remembering.remember(content, **{"embedder": EMBEDDER, **changes})


def exported(**changes: Any) -> list[str]:
    return list(memories_export(memories=Memory.objects.all(), actor=COMMAND_LINE, **changes))


def brought_in(*lines: str | bytes | dict[str, Any]) -> ImportReport:
    def encoded() -> Iterator[bytes]:
        for line in lines:
            if isinstance(line, dict):
                line = json.dumps(line)
            yield line.encode() if isinstance(line, str) else line

    return memories_import(lines=encoded(), embedder=EMBEDDER, actor=COMMAND_LINE)


def fill(chat: Chat) -> None:
    """Memories of every kind, with history."""
    message = uuid.uuid4()
    remember("The price is 35", source="command", source_message_id=message)
    remember("The price is 40", tags=("a", "ב"), category="prices", metadata={"n": [1.5, None]})
    remember("the price is 40.", source="api")
    changed = remember("Dana likes tea", visibility="chat", chat_id=chat.pk)
    memory_update(memory_id=changed.pk, actor=SYSTEM, embedder=EMBEDDER, content="שלום \\n\n'\" 🙂")
    pinned = remember(
        "We open at 9",
        visibility="public",
        expires_at=datetime(2030, 1, 1, 2, 3, 4, 5, timezone.utc),
    )
    memory_pin(memory_id=pinned.pk, actor=SYSTEM)
    remember("Perhaps", proposed=True, confidence=0.25)


@pytest.mark.parametrize("embeddings", [False, True])
def test_what_goes_out_and_in_is_the_same(chat: Chat, embeddings: bool) -> None:
    fill(chat)
    before = exported(embeddings=embeddings)
    vectors = MemoryEmbedding.objects.count()
    Memory.objects.all().delete()
    calls = len(EMBEDDER.calls)

    report = brought_in(*before)

    assert report.as_dict() == {"created": 5, "duplicates": 0, "errors": []}
    assert exported(embeddings=embeddings) == before
    assert MemoryEmbedding.objects.count() == vectors
    assert Memory.objects.get(content="The price is 35").superseded_by is not None
    assert len(EMBEDDER.calls[calls:]) == (0 if embeddings else 1)


def test_another_id_with_a_fact_that_is_there_is_a_duplicate(chat: Chat) -> None:
    remember("The price is 40")
    line = {"memory_id": str(uuid.uuid4()), "content": "the price is 40!", "visibility": "owner"}
    in_chat = {**line, "visibility": "chat", "whatsapp_chat": CHAT, "memory_id": None}
    report = brought_in(line, in_chat, in_chat)
    assert (report.created, report.duplicates) == (1, 2)


def test_a_line_needs_little() -> None:
    assert brought_in({"content": "Dana likes tea", "visibility": "public"}).created == 1
    memory = Memory.objects.get()
    assert (memory.type, memory.status, memory.told_count) == ("fact", "active", 1)
    assert memory.tellings.count() == 1
    assert memory.embeddings.count() == 1


def test_a_line_without_visibility_is_seen_by_as_few_as_one_posted_without_it(chat: Chat) -> None:
    assert brought_in({"content": "a"}, {"content": "b", "whatsapp_chat": CHAT}).created == 2
    seen_by = dict(Memory.objects.values_list("content", "visibility"))
    assert seen_by == {"a": "owner", "b": "chat"}


def test_a_chat_that_is_new_comes_in_with_its_memory_and_never_with_a_wrong_line() -> None:
    good = {"content": "Dana likes tea", "visibility": "chat", "whatsapp_chat": OTHER_CHAT}
    report = brought_in(good, {**good, "content": ""}, {"content": " ", "whatsapp_chat": CHAT})
    assert (report.created, len(report.errors)) == (1, 2)
    (made,) = Chat.objects.all()
    assert (made.whatsapp_chat, made.client_phone) == (OTHER_CHAT, "15550100456")
    assert Memory.objects.get().chat_id == made.pk


def test_err_integration_004_a_time_without_zone_is_utc(caplog: pytest.LogCaptureFixture) -> None:
    brought_in({"content": "a", "visibility": "owner", "created_at": "2026-01-01T10:00:00"})
    assert Memory.objects.get().created_at == datetime(2026, 1, 1, 10, tzinfo=timezone.utc)
    assert "created_at has no time zone" in caplog.text


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (b"\xff", "is not UTF-8"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"confidence": NaN}', "NaN is no number of JSON"),
        ({}, "content: is missing"),
        ({"content": "a", "visibility": "all"}, "visibility: is one of"),
        ({"content": 5}, "content: is not a text"),
        ({"content": " ", "visibility": "owner"}, "content: is empty"),
        ({"content": "\u202e\u00ad", "visibility": "owner"}, "content: is empty"),
        ({"content": "\x00"}, "content: has characters that can't be stored"),
        ({"content": "\ud800"}, "content: has characters that can't be stored"),
        ({"memory_id": "1"}, "memory_id: is not a UUID"),
        ({"created_at": "soon"}, "created_at: is not an ISO-8601 time"),
        ({"created_at": "2026-13-01T00:00:00Z"}, "created_at: is not an ISO-8601 time"),
        ({"created_at": "9999-12-31T23:59:59-23:59"}, "created_at: is not an ISO-8601 time"),
        ({"expires_at": "0001-01-01T00:00:00+23:59"}, "expires_at: is not an ISO-8601 time"),
        ({"created_at": "9999-12-31T23:59:59Z"}, "created_at: is not an ISO-8601 time"),
        ({"expires_at": "0001-12-31T23:59:59Z"}, "expires_at: is not an ISO-8601 time"),
        ({"told_count": 0}, "told_count: is not a number from 1 on"),
        ({"pinned": "yes"}, "pinned: is neither true nor false"),
        ({"status": "lost"}, "status: is one of active, superseded, proposed"),
        ({"visibility": "chat"}, "choose owner or public"),
        ({"whatsapp_chat": 5}, "is not a chat's address"),
        ({"whatsapp_chat": "1 2"}, "is not a chat's address"),
        ({"whatsapp_chat": ""}, "is not a chat's address"),
        ({"tags": "a"}, "tags: is not a list"),
        ({"tags": ["a" * 65]}, "tags: has 65 characters, at most 64"),
        ({"metadata": [1]}, "metadata: is not an object"),
        ({"revisions": [5]}, "revisions: is not a list of objects"),
        ({"revisions": [{"content": "a"}]}, "revisions.number: is not a number from 1 on"),
        ({"embeddings": [{"model": "m", "vector": [0, 0]}]}, "embeddings.vector: is no vector"),
        ({"embeddings": [{"model": "m", "vector": "x"}]}, "embeddings.vector: is not a list"),
    ],
)
def test_a_wrong_line_is_told(chat: Chat, line: str | bytes | dict[str, Any], detail: str) -> None:
    good = {"content": "good", "visibility": "owner"}
    if isinstance(line, dict) and line and "content" not in line:
        line = {**good, "content": "bad", **line}
    report = brought_in(good, "", line, {**good, "content": "good too"})
    assert report.created == 2
    (error,) = report.errors
    assert error["line"] == 3
    assert detail in error["detail"]


def test_unknown_fields_are_passed_over_and_a_mark_at_the_start(chat: Chat) -> None:
    line = json.dumps({"content": "a fact", "visibility": "owner", "later": {"x": 1}})
    assert brought_in(b"\xef\xbb\xbf" + line.encode()).created == 1


def test_what_superseded_it_may_come_later_or_never() -> None:
    old, new, lost, nobody = (str(uuid.uuid4()) for _ in range(4))
    lines = [
        {"memory_id": old, "content": "a", "superseded_by": new, "status": "superseded"},
        {"memory_id": lost, "content": "c", "superseded_by": nobody, "status": "superseded"},
        *({"content": f"filler {number}"} for number in range(600)),
        {"memory_id": new, "content": "b"},
    ]  # fmt: skip
    report = brought_in(*({"visibility": "owner", **line} for line in lines))
    assert report.errors == []
    assert Memory.objects.get(pk=old).superseded_by_id == uuid.UUID(new)
    assert Memory.objects.get(pk=lost).superseded_by_id is None


ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
TEXT = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"),
    min_size=1,
    max_size=30,
)  # fmt: skip
LABEL = TEXT.filter(lambda text: not shows_nothing(text))
TIMES = st.datetimes(
    EARLIEST.replace(tzinfo=None), LATEST.replace(tzinfo=None), timezones=st.just(timezone.utc)
)
MEMORIES = st.lists(
    st.builds(
        NewMemory,
        content=LABEL,
        visibility=st.sampled_from(["owner", "public"]),
        type=LABEL,
        category=LABEL | st.just(""),
        tags=st.lists(LABEL, max_size=3).map(tuple),
        source=st.sampled_from(["", "api", "command"]),
        source_message_id=st.none() | st.uuids(),
        metadata=st.dictionaries(TEXT, st.none() | st.integers() | st.lists(TEXT), max_size=3),
        confidence=st.none() | st.floats(0, 1),
        pinned=st.booleans(),
        expires_at=st.none() | TIMES,
        proposed=st.booleans(),
    ),
    max_size=6,
)  # fmt: skip


@settings(ANY, max_examples=30)
@given(MEMORIES)
def test_any_memories_survive_the_round_trip(told: list[NewMemory]) -> None:
    Memory.objects.all().delete()
    memories_remember(memories=told, embedder=EMBEDDER)
    before = exported(embeddings=True)
    Memory.objects.all().delete()
    report = brought_in(*before)
    assert report.errors == []
    assert exported(embeddings=True) == before


def test_many_wrong_lines_are_counted_when_there_are_too_many_to_list() -> None:
    report = brought_in(*["x"] * 1_500)
    assert len(report.errors) == 1_000
    assert report.as_dict()["errors_left_out"] == 500


@pytest.mark.slow
def test_a_long_file_takes_no_more_memory_than_a_short_one() -> None:
    def peak(count: int) -> int:
        """The most that is held while so many memories come in."""
        name = uuid.uuid4().hex
        lines = (
            json.dumps({"content": f"{name} {number}", "visibility": "owner"}).encode()
            for number in range(count)
        )
        tracemalloc.start()
        memories_import(lines=lines, embedder=None, actor=COMMAND_LINE)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(50)
    assert peak(1_000) < peak(500) * 1.5


def test_the_commands_write_and_read_a_file(chat: Chat, tmp_path: Path) -> None:
    fill(chat)
    file = tmp_path / "memories.ndjson"
    call_command("memories_export", "--out", str(file), stderr=StringIO())
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_text(encoding="utf-8").splitlines()) == 5
    assert list(tmp_path.iterdir()) == [file]
    out = StringIO()
    call_command("memories_import", str(file), "--json", stdout=out)
    assert json.loads(out.getvalue()) == {"created": 0, "duplicates": 5, "errors": []}
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert "export" in actions


def test_a_device_is_not_replaced_by_the_exported_file(tmp_path: Path) -> None:
    device = tmp_path / "device"
    os.mkfifo(device)
    with pytest.raises(CommandError, match="device is not a file"):
        call_command("memories_export", "--out", str(device))
    assert device.is_fifo()
    assert list(tmp_path.iterdir()) == [device]


def test_one_chats_memories_are_exported_alone(chat: Chat) -> None:
    fill(chat)
    out = StringIO()
    call_command("memories_export", "--chat", CHAT, stdout=out)
    call_command("memories_export", "--chat", CHAT, "--redact", stdout=out)
    line, redacted = out.getvalue().splitlines()
    assert json.loads(line)["whatsapp_chat"] == CHAT
    assert json.loads(redacted)["redacted"] is True
    assert CHAT not in redacted
    with pytest.raises(CommandError, match="vectors"):
        call_command("memories_export", "--embeddings", "--redact")
    with pytest.raises(CommandError, match="no chat"):
        call_command("memories_export", "--chat", OTHER_CHAT)


def test_the_import_command_tells_what_it_refused(tmp_path: Path) -> None:
    file = tmp_path / "memories.ndjson"
    file.write_text('{"content": "a", "visibility": "owner"}\n{}\n', encoding="utf-8")
    out = StringIO()
    with pytest.raises(CommandError, match="1 lines were refused") as partly:
        call_command("memories_import", str(file), stdout=out)
    assert partly.value.returncode == 1
    assert "1 memories came in, 0 were there already, 1 lines were refused" in out.getvalue()
    assert "line 2: content: is missing" in out.getvalue()
    file.write_text("{}\n", encoding="utf-8")
    with pytest.raises(CommandError):
        call_command("memories_import", str(file), stdout=StringIO())
    with pytest.raises(CommandError) as refused:
        call_command("memories_import", str(tmp_path / "none"), stdout=StringIO())
    assert refused.value.returncode == 2


def test_the_consolidation_command_proposes(chat: Chat) -> None:
    remember("The customer Dana Levi prefers morning meetings in the Haifa office")
    remember("Customer Dana Levi prefers meetings in the morning, Haifa office")
    out = StringIO()
    call_command("memories_consolidate", "--json", stdout=out)
    assert json.loads(out.getvalue()) == {"proposals": 1}
