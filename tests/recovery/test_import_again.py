"""What an import makes of sessions that go on, ended, or are there already."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.conversations.message_store import NewMessage, messages_add
from sessions_app.conversations.session_lifecycle import session_start
from sessions_app.models import ChatSession, Message, MessageEmbedding, Turn
from sessions_app.models.chats import Limits
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.recovery.conftest import Import
from tests.recovery.old_files import (
    CLIENT,
    NOW,
    OTHER_CLIENT,
    OldFolder,
    message,
    new_id,
)
from tests.recovery.stored import at, everything, known_chat, stored
from tests.world import GODFATHER

pytestmark = pytest.mark.django_db


def test_the_window_is_our_own_and_not_the_files(old: OldFolder, bring_in: Import) -> None:
    documents = [message(number, "x" * 40) for number in range(1, 21)]
    client = old.add(documents, total_tokens=123_456, message_counter=99)
    owner = old.add([message(number, "x" * 40) for number in range(1, 21)], whatsapp_chat=GODFATHER)
    bring_in(limits=Limits(client=55, godfather=155))
    session = ChatSession.objects.get(pk=client)
    assert (session.message_counter, session.window_start, session.total_tokens) == (20, 16, 50)
    session = ChatSession.objects.get(pk=owner)
    assert (session.window_start, session.total_tokens) == (6, 150)


@pytest.mark.parametrize(
    ("hours", "status"), [(23.99, "active"), (24, "expired"), (24 * 400, "expired")]
)
def test_a_session_idle_for_too_long_comes_in_as_expired(
    old: OldFolder, bring_in: Import, hours: float, status: str
) -> None:
    """EDGE-004: at the boundary it is over."""
    old.add(last_active=at(hours), created_at=at(hours + 1))
    bring_in()
    session = ChatSession.objects.get()
    assert session.status == status
    ended = None if status == "active" else session.last_active + timedelta(hours=24)
    assert session.expired_at == ended


@pytest.mark.parametrize("folder", ["expired", "archived"])
def test_the_folder_gives_the_status(old: OldFolder, bring_in: Import, folder: str) -> None:
    """AC-SESSION-005."""
    old.add([message(1)], folder=folder)
    report = bring_in()
    session = ChatSession.objects.get()
    assert (session.status, session.expired_at) == (folder, NOW), "never in the future"
    assert report.sessions_expired == 1


def test_of_two_active_sessions_of_a_chat_the_one_active_last_stays_so(
    old: OldFolder, bring_in: Import
) -> None:
    older = old.add([message(1)], last_active=at(3), created_at=at(9))
    newest = old.add([message(1)], last_active=at(1), created_at=at(9))
    old.add([message(1)], last_active=at(2), created_at=at(9))
    report = bring_in()
    assert str(ChatSession.objects.get(status="active").session_id) == newest
    expired = ChatSession.objects.get(pk=older)
    assert expired.status == "expired"
    assert expired.expired_at == NOW, "not later than now"
    assert report.warnings == {"another_session_active": 2}


def test_the_active_session_that_is_there_stays_the_active_one(
    old: OldFolder, bring_in: Import
) -> None:
    there = session_start(chat=known_chat(), now=NOW - timedelta(hours=5))
    old.add([message(1)], last_active=at(1))
    report = bring_in()
    assert ChatSession.objects.get(status="active") == there
    assert report.sessions_expired == 1
    assert report.warnings == {"another_session_active": 1}


def test_running_it_again_changes_nothing(old: OldFolder, bring_in: Import) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        old.add([message(number) for number in (1, 2, 2)], whatsapp_chat=chat)
    old.add([message(1)], folder="expired")
    bring_in()
    before = everything()
    again = bring_in()
    assert everything() == before
    assert (again.sessions_there, again.sessions_imported) == (3, 0)
    assert (again.messages_there, again.messages_imported) == (7, 0)
    assert (again.vectors, again.skipped, again.warnings) == (0, [], {})


def test_what_a_session_lacks_is_added_where_its_number_is_free(
    old: OldFolder, bring_in: Import
) -> None:
    documents = [message(number) for number in (1, 2, 3)]
    session_id = old.add(documents)
    absent = old.root / "messages" / f"{documents[1]['message_id']}.json"
    body = absent.read_bytes()
    absent.unlink()
    bring_in()
    assert [one.order_num for one in stored(session_id)] == [1, 3]

    absent.write_bytes(body)
    old.add_message(message(3, "a later one", session_id=session_id))
    report = bring_in()

    assert [one.order_num for one in stored(session_id)] == [1, 2, 3]
    assert (report.messages_imported, report.messages_there) == (1, 2)
    (refused,) = report.skipped
    assert refused.reason.startswith("order_num: another message")
    assert ChatSession.objects.get().message_counter == 3


def test_a_session_that_goes_on_here_is_not_disturbed_by_a_second_import(
    old: OldFolder, bring_in: Import
) -> None:
    session_id = old.add([message(1), message(2)])
    bring_in()
    session = ChatSession.objects.get(pk=session_id)
    new = NewMessage(role="user", content="and now?", timestamp=NOW)
    messages_add(session=session, new=[new], token_limit=4_000, now=NOW)
    before = everything()
    bring_in(embedder=None)
    assert everything() == before


def test_nothing_that_comes_in_is_answered(old: OldFolder, bring_in: Import) -> None:
    old.add([message(1)], last_active=at(0.1))
    bring_in()
    assert not Turn.objects.exists()


def test_a_chat_whose_memory_is_off_gets_nothing(old: OldFolder, bring_in: Import) -> None:
    known_chat(memory_enabled=False)
    old.add([message(1)])
    report = bring_in()
    assert not Message.objects.exists()
    assert "memory is switched off" in report.skipped[0].reason


def test_more_than_one_batch_comes_in_with_vectors_for_all(
    old: OldFolder, bring_in: Import
) -> None:
    documents = [message(1, message_id=new_id(), order_num=number) for number in range(1, 521)]
    old.add(messages=documents, message_ids=[])
    embedder = HashingEmbedder()
    report = bring_in(embedder=embedder)
    assert report.messages_imported == report.vectors == 520
    assert MessageEmbedding.objects.count() == 520
    assert max(len(call) for call in embedder.calls) == 200


def test_messages_are_stored_with_few_queries(old: OldFolder, bring_in: Import) -> None:
    counts = []
    for size in (5, 105):
        old.add([message(number) for number in range(1, size + 1)], whatsapp_chat=f"{size}@c.us")
        with CaptureQueriesContext(connection) as queries:
            bring_in(embedder=None)
        counts.append(len(queries))
    second_of_the_first = 12
    assert counts[1] <= counts[0] + second_of_the_first


def test_vectors_are_made_by_the_next_run_where_the_embedder_failed(
    old: OldFolder, bring_in: Import
) -> None:
    old.add([message(1)])
    old.add([message(1)], whatsapp_chat=OTHER_CLIENT)
    failing = HashingEmbedder(failure=EmbedderError("down"))
    report = bring_in(embedder=failing)
    assert report.messages_imported == 2
    assert report.warnings == {"no_vectors": 1}
    assert len(failing.calls) == 1, "it is not asked for every session"
    assert bring_in().vectors == 2


def test_without_vectors_when_so_asked(old: OldFolder, bring_in: Import) -> None:
    old.add([message(1)])
    assert bring_in(embedder=None).vectors == 0
    assert not MessageEmbedding.objects.exists()
