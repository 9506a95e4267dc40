"""A document in a chat: fetched, read, remembered and answered, once."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memories_app.models import Memory, SourceDocument
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.documents.sniffing import DocumentLimits, ExtractedText
from memoryproject.foundation.integrations.whatsapp.base import MediaError
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Turn
from sessions_app.turns.queue import chat_answer
from sessions_app.turns.turn_dependencies import FileDependencies
from tests.documents import files
from tests.documents.conftest import as_if_killed_before_the_answer
from tests.doubles.direct_extractor import DirectExtractor
from tests.events import revocation
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

GROUP = {"group_id": "120363000000000001", "group_name": "TestCorp"}


class CountingExtractor(DirectExtractor):
    """Counts how often it reads, and fails with the given errors first."""

    def __init__(self, *errors: BaseException) -> None:
        super().__init__(DocumentLimits(pages=20))
        self.errors = list(errors)
        self.reads = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def extract(self, path: Path) -> ExtractedText:
        self.reads += 1
        if self.errors:
            raise self.errors.pop(0)
        self.meanwhile()
        return super().extract(path)


@pytest.fixture
def extractor() -> CountingExtractor:
    return CountingExtractor()


@pytest.fixture
def world(world: World, folder: Path, extractor: CountingExtractor) -> Iterator[World]:
    """With something that reads documents."""
    limits = replace(extractor.limits, size=100_000)
    dependencies = FileDependencies(folder=folder, extractor=extractor, limits=limits)
    world.use(files=dependencies)
    yield world
    assert not list(folder.glob("*")), "no file is left lying"


def sends(
    world: World, chat: str, content: bytes, text: str = "", name: str = "terms.pdf", **more: Any
) -> list[str]:
    """A document with this content, and the answers to it."""
    media = Media(media_id=uuid.uuid4().hex, mime_type="application/pdf", filename=name)
    world.provider.files[media.media_id] = content
    return world.say(chat, text, kind="document", media=media, **more)


FACTS = files.pdf("The warranty of TestCorp's pumps is seven years.", "Delivery is on Mondays.")


def test_a_document_is_read_and_its_facts_are_recalled(world: World) -> None:
    assert sends(world, CLIENT, FACTS) == [
        "✅ I read terms.pdf: 2 pages, 1 passage. Ask me about it."
    ]
    document = SourceDocument.objects.get()
    assert document.source_message_id == world.messages(CLIENT)[0].message_id
    assert "seven years" in world.seen_by_model(CLIENT, "How long is the pumps' warranty?")
    actions = list(AuditEvent.objects.filter(object_type="document").order_by("id"))
    assert [(event.action, event.actor_kind) for event in actions] == [
        ("document.receive", "person"),
        ("document.store", "person"),
    ]
    assert {event.chat for event in actions} == {
        AuditEvent.objects.get(action="session.create").chat
    }


def test_visibility_is_the_chats(world: World) -> None:
    sends(world, CLIENT, FACTS)
    sends(world, GODFATHER, files.pdf("TestCorp owes us 900 euros."))
    found = set(SourceDocument.objects.values_list("visibility", "memories__visibility"))
    assert found == {("chat", "chat"), ("owner", "owner")}
    assert "seven years" not in world.seen_by_model(OTHER_CLIENT, "How long is the warranty?")
    assert "900 euros" not in world.seen_by_model(CLIENT, "What does TestCorp owe?")
    assert "seven years" in world.seen_by_model(GODFATHER, "How long is the pumps' warranty?")


def test_a_caption_is_answered_with_the_document_in_reach(world: World) -> None:
    (reply,) = sends(world, CLIENT, FACTS, text="How long is the pumps' warranty?")
    note, _, answer = reply.partition("\n\n")
    assert note == "✅ I read terms.pdf: 2 pages, 1 passage. Ask me about it."
    assert answer.startswith("answer to: ")
    assert "seven years" in "\n".join(message.content for message in world.prompt())


def test_in_hebrew(world: World) -> None:
    world.say(CLIENT, "שלום, אני שולח מסמך")
    assert sends(world, CLIENT, FACTS) == [
        "✅ קראתי את terms.pdf: 2 עמודים, קטע אחד. אפשר לשאול אותי עליו."
    ]


def test_a_text_file_has_no_pages(world: World) -> None:
    (reply,) = sends(world, CLIENT, "המחיר הוא מאה שקלים".encode(), name="prices.txt")
    assert reply == "✅ I read prices.txt: 1 passage. Ask me about it."


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (files.encrypted_pdf("password"), "protected by a password"),
        (files.pdf("", ""), "found no text in terms.pdf"),
        (b"MZ" + bytes(100), "can't read files like terms.pdf"),
        (b"", "terms.pdf is empty"),
        (b"%PDF-1.7 broken", "seems to be damaged"),
        (b"x" * 100_001, "larger than 0 MB"),
        (files.many_pages_pdf(21), "more than 20 pages"),
    ],
)
def test_what_cannot_be_read_is_told(content: bytes, told: str, world: World) -> None:
    (reply,) = sends(world, CLIENT, content)
    assert told in reply
    assert not Memory.objects.exists()


def test_a_file_that_cannot_be_fetched_is_tried_again_and_then_told(world: World) -> None:
    waits: list[float] = []
    world.use(sleep=waits.append)
    world.provider.fail_next_media(*[MediaError("down")] * 3)
    assert sends(world, CLIENT, FACTS)[0].startswith("✅")
    assert waits == [1.0, 2.0, 4.0]

    world.provider.fail_next_media(*[MediaError("down")] * 4)
    assert sends(world, OTHER_CLIENT, FACTS) == [
        "I couldn't get terms.pdf from WhatsApp. Please send it again."
    ]
    assert sends(world, OTHER_CLIENT, FACTS)[0].startswith("✅")


def test_the_same_document_again_is_known(world: World, extractor: CountingExtractor) -> None:
    sends(world, CLIENT, FACTS)
    assert sends(world, CLIENT, FACTS, name="copy.pdf") == [
        "I know copy.pdf already: 2 pages, 1 passage. Ask me about it."
    ]
    assert (SourceDocument.objects.count(), extractor.reads) == (1, 1)


def test_killed_while_reading_the_next_worker_reads_it_once(
    world: World, extractor: CountingExtractor, folder: Path
) -> None:
    """The file that lies there is read; it is not fetched again."""
    extractor.errors.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        sends(world, CLIENT, FACTS)
    Turn.objects.update(lease_owner=":1:1.00", lease_until=None)

    world.work()

    assert [part.text[:6] for part in world.provider.sent] == ["✅ I re"]
    assert (len(world.provider.fetched), extractor.reads) == (1, 2)
    assert Memory.objects.count() == 1


def test_killed_later_it_is_answered(world: World, extractor: CountingExtractor) -> None:
    sends(world, CLIENT, FACTS)
    as_if_killed_before_the_answer()

    world.work()

    assert [part.text for part in world.provider.sent][1:] == [
        "✅ I read terms.pdf: 2 pages, 1 passage. Ask me about it."
    ]
    assert (extractor.reads, len(world.provider.fetched)) == (1, 1)


def test_with_memory_off_nothing_is_kept(world: World) -> None:
    world.with_rules(memory_enabled=False)
    (reply,) = sends(world, CLIENT, FACTS)
    assert "memory is switched off" in reply
    assert world.provider.fetched == []
    assert Turn.objects.get().context == {"kind": "document"}
    assert not SourceDocument.objects.exists()


def test_with_longterm_memory_off_nothing_is_kept(world: World) -> None:
    world.with_answer_rules(longterm_enabled=False)
    (reply,) = sends(world, CLIENT, FACTS, text="What is in it?")
    assert "memory is switched off" in reply
    assert "answer to: " in reply
    assert not SourceDocument.objects.exists()


def test_in_a_group_it_is_read_when_it_is_for_us(world: World) -> None:
    assert sends(world, CLIENT, FACTS, **GROUP) == []
    assert world.provider.fetched == []
    (reply,) = sends(world, GODFATHER, FACTS, **GROUP, mentions_us=True, text="@us terms")
    assert reply.startswith("✅ I read terms.pdf")
    assert SourceDocument.objects.get().visibility == "chat", "in groups everybody is a client"


def test_a_document_that_is_taken_back_is_forgotten(world: World) -> None:
    sends(world, CLIENT, FACTS)
    world.receive(revocation(world.messages(CLIENT)[0].provider_message_id or ""))
    assert not SourceDocument.objects.exists()
    assert not Memory.objects.exists()


def test_taken_back_it_is_not_stored(
    world: World, extractor: CountingExtractor, folder: Path
) -> None:
    media = Media(media_id="1", filename="terms.pdf")
    world.provider.files["1"] = FACTS
    message = message_from(CLIENT, "", kind="document", media=media)
    world.receive(message)
    extractor.meanwhile = lambda: world.receive(revocation(message.provider_message_id))
    world.work()
    assert not SourceDocument.objects.exists()
    assert not Memory.objects.exists()
    assert world.provider.sent == []
    for path in folder.glob("*.document"):
        path.unlink()


def test_a_burst_is_not_merged_over_a_document(world: World) -> None:
    media = Media(media_id="1", filename="terms.pdf")
    world.provider.files["1"] = FACTS
    world.receive(
        message_from(CLIENT, "one"),
        message_from(CLIENT, "", kind="document", media=media),
        message_from(CLIENT, "two"),
    )
    world.with_answer_rules(burst_gap=timedelta(minutes=1))
    chat_answer(chat_id=world.chat(CLIENT).pk, dependencies=world.dependencies)
    sent = [part.text.partition(":")[0] for part in world.provider.sent]
    assert sent == ["answer to", "✅ I read terms.pdf", "answer to"]


def test_chats_that_turn_out_to_be_one_person_keep_their_documents(world: World) -> None:
    sends(world, CLIENT, FACTS)
    sends(world, OTHER_CLIENT, FACTS)
    merged = chat_merge(world.chat(CLIENT), world.chat(OTHER_CLIENT))

    assert SourceDocument.objects.get().chat_id == merged.pk
    assert Memory.objects.get().chat_id == merged.pk
