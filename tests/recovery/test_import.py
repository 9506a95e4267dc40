"""Old sessions come in as they were, once, and nothing of them is answered."""

from __future__ import annotations

import io
import json
import uuid
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memoryproject.integrations.embedders.base import EmbedderError
from memoryproject.integrations.embedders.hashing import HashingEmbedder
from memoryproject.lib.text.terms import index_text
from sessions_app.models import Chat, ChatAddress, ChatSession, Message, MessageEmbedding, Turn
from sessions_app.roles import Limits
from sessions_app.services.messages import NewMessage, message_add
from sessions_app.services.sessions import session_start
from tests.recovery.conftest import Import
from tests.recovery.old_files import (
    BOT,
    CLIENT,
    NOW,
    OTHER_CLIENT,
    OldFolder,
    message,
    new_id,
)
from tests.world import GODFATHER

pytestmark = pytest.mark.django_db


def stored(session_id: str) -> list[Message]:
    return list(Message.objects.filter(session_id=session_id).order_by("order_num"))


def everything() -> list[Any]:
    """All that an import writes, by value."""
    models = (Chat, ChatAddress, ChatSession, Message, MessageEmbedding)
    return [list(model.objects.order_by("pk").values()) for model in models]


def known_chat(**values: Any) -> Chat:
    """The client's chat, as a webhook would have made it."""
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud", number_id="1", **values)
    ChatAddress.objects.create(chat=chat, provider="cloud", address=CLIENT)
    return chat


def at(hours_ago: float) -> str:
    return (NOW - timedelta(hours=hours_ago)).isoformat()


def test_ac_session_006_a_session_comes_in_with_all_that_its_files_say(
    old: OldFolder, bring_in: Import
) -> None:
    """AC-SESSION-001, AC-SESSION-002, AC-SESSION-006."""
    documents = [message(number, f"text number {number}") for number in range(1, 11)]
    session_id = old.add(documents)

    report = bring_in()

    session = ChatSession.objects.get()
    assert (str(session.session_id), session.status) == (session_id, "active")
    assert (session.whatsapp_chat, session.chat.client_name) == (CLIENT, "Test User")
    assert session.chat.client_phone == "15550100123"
    assert session.created_at.isoformat() == at(2)
    assert session.last_active.isoformat() == at(1)
    assert (session.message_counter, session.window_start) == (10, 1)
    messages = stored(session_id)
    assert session.total_tokens == sum(one.tokens for one in messages) > 0
    for one, document in zip(messages, documents, strict=True):
        assert str(one.message_id) == document["message_id"]
        for name in ("order_num", "role", "content", "sender", "recipient", "was_received"):
            assert getattr(one, name) == document[name]
        assert one.timestamp == datetime.fromisoformat(document["timestamp"])
        assert one.received_at == datetime.fromisoformat(document["received_at"])
        assert one.tokens == len(document["content"]) // 4
        assert (one.terms, one.term_count) == vars_of(document["content"])
        assert one.metadata == {"imported": {}}
    assert (report.sessions_imported, report.messages_imported) == (1, 10)
    assert (report.vectors, MessageEmbedding.objects.count()) == (10, 10)
    assert not report.skipped
    assert not report.warnings


def vars_of(content: str) -> tuple[list[str], int]:
    indexed = index_text(content)
    return indexed.terms, indexed.length


def test_the_older_names_are_read_where_chat_id_is_the_session(
    old: OldFolder, bring_in: Import
) -> None:
    session_id = new_id()
    one = message(1, chat_id=session_id)
    old.add_message(one)
    ids = [one["message_id"]]
    old.add(
        session_id=...,
        whatsapp_chat=...,
        chat_id=session_id,
        phone_number=CLIENT,
        message_ids=ids,
    )
    bring_in()
    assert ChatSession.objects.get().whatsapp_chat == CLIENT
    assert len(stored(session_id)) == 1


def test_the_older_names_are_read_where_chat_id_is_the_whatsapp_chat(
    old: OldFolder, bring_in: Import
) -> None:
    session_id = new_id()
    one = message(1, chat_id=CLIENT)
    old.add_message(one)
    session = {
        "chat_id": CLIENT,
        "message_ids": [one["message_id"]],
        "created_at": at(2),
        "last_active": at(1),
    }
    old.write(f"{session_id}.json", session)
    report = bring_in()
    assert not report.skipped
    assert str(ChatSession.objects.get().session_id) == session_id
    assert ChatSession.objects.get().whatsapp_chat == CLIENT
    assert len(stored(session_id)) == 1


def test_the_oldest_sessions_hold_their_messages_themselves(
    old: OldFolder, bring_in: Import
) -> None:
    held = [message(number, message_id=..., order_num=..., tokens=...) for number in (1, 2, 3)]
    session_id = old.add(message_ids=..., messages=held)
    first = bring_in()
    assert [one.order_num for one in stored(session_id)] == [1, 2, 3]
    assert [one.content for one in stored(session_id)] == ["message 1", "message 2", "message 3"]
    again = bring_in()
    assert (first.messages_imported, again.messages_imported) == (3, 0)
    assert again.messages_there == 3


def test_content_and_unknown_fields_are_kept_as_they_are(old: OldFolder, bring_in: Import) -> None:
    content = "  \tשלום ₪5,000 ✅\r\n\n*bold*  "
    unknown = {"mood": "good", "nested": {"a": [1, None, 2.5]}}
    session_id = old.add([message(1, content, **unknown), message(2, role="summary")])
    bring_in()
    one, two = stored(session_id)
    assert one.content == content
    assert one.metadata == {"imported": unknown}
    assert two.role == "summary"


def test_ids_that_are_no_uuids_always_become_the_same_ones(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    old.add([message(1, message_id="first"), message(2, message_id="second")], session_id="s-1")
    report = bring_in()
    session = ChatSession.objects.get()
    assert report.renamed == {"s-1": str(session.session_id)}
    assert f"Session {session.session_id} was called 's-1' in its file." in caplog.text
    one, two = stored(str(session.session_id))
    assert one.metadata == {"imported": {"message_id": "first", "session_id": "s-1"}}
    assert two.message_id.version == session.session_id.version == 5
    before = everything()
    again = bring_in()
    assert (again.sessions_there, again.messages_there) == (1, 2)
    assert everything() == before


def test_a_number_alone_is_a_persons_chat(old: OldFolder, bring_in: Import) -> None:
    old.add(whatsapp_chat=..., phone_number="+15550100123")
    bring_in()
    assert ChatSession.objects.get().whatsapp_chat == CLIENT


def test_edge_001_a_session_without_messages_comes_in_empty(
    old: OldFolder, bring_in: Import
) -> None:
    old.add(total_tokens=77, message_counter=9)
    bring_in()
    session = ChatSession.objects.get()
    assert (session.message_counter, session.total_tokens, session.window_start) == (0, 0, 1)


def test_a_group_is_one(old: OldFolder, bring_in: Import) -> None:
    old.add(whatsapp_chat="120363000000000001@g.us")
    bring_in()
    assert Chat.objects.get().is_group


def test_the_chat_that_is_known_by_the_address_gets_the_session(
    old: OldFolder, bring_in: Import
) -> None:
    chat = known_chat(client_name="As Known")
    old.add([message(1)])
    bring_in()
    assert ChatSession.objects.get().chat == chat
    chat.refresh_from_db()
    assert (chat.client_name, chat.provider, chat.number_id) == ("As Known", "cloud", "1")


def test_a_missing_name_is_filled_in(old: OldFolder, bring_in: Import) -> None:
    known_chat()
    old.add()
    bring_in()
    assert Chat.objects.get().client_name == "Test User"


def test_the_window_is_our_own_and_not_the_files(old: OldFolder, bring_in: Import) -> None:
    documents = [message(number, "x" * 40) for number in range(1, 21)]
    client = old.add(documents, total_tokens=123_456, message_counter=99)
    owner = old.add([message(number, "x" * 40) for number in range(1, 21)], whatsapp_chat=GODFATHER)
    bring_in(limits=Limits(client=55, godfather=155))
    session = ChatSession.objects.get(pk=client)
    assert (session.message_counter, session.window_start, session.total_tokens) == (20, 16, 50)
    session = ChatSession.objects.get(pk=owner)
    assert (session.window_start, session.total_tokens) == (6, 150)


def test_messages_that_were_pruned_from_their_session_come_in_too(
    old: OldFolder, bring_in: Import
) -> None:
    documents = [message(number) for number in range(1, 6)]
    session_id = old.add(documents, message_ids=[one["message_id"] for one in documents[3:]])
    report = bring_in()
    assert [one.order_num for one in stored(session_id)] == [1, 2, 3, 4, 5]
    assert not report.warnings


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


def test_numbers_given_twice_are_given_anew_in_order(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    documents = [message(1, "a"), message(2, "b"), message(3, "c", order_num=2)]
    documents += [message(4, "d", order_num=3), message(9, "e")]
    session_id = old.add(documents)
    report = bring_in()
    messages = stored(session_id)
    assert [(one.order_num, one.content) for one in messages] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
        (4, "d"),
        (9, "e"),
    ], "gaps stay"
    assert messages[2].metadata["imported"] == {"order_num": 2}
    assert report.warnings == {"repeated_order_num": 1}
    assert f"Session {session_id} has the same order_num" in caplog.text
    assert ChatSession.objects.get().message_counter == 9


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
    message_add(session=session, new=new, token_limit=4_000, now=NOW)
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


def test_a_dry_run_tells_the_same_and_writes_nothing(old: OldFolder, bring_in: Import) -> None:
    documents = [message(number) for number in range(1, 6)]
    old.add(documents, message_ids=[one["message_id"] for one in documents[3:]])
    old.add([message(1), message(1)], last_active=at(5))
    old.write("broken.json", b"{")
    before = everything()
    told = bring_in(dry_run=True)
    assert everything() == before
    done = bring_in()
    assert told.dry_run
    assert {**told.as_dict(), "vectors": 0, "dry_run": 0} == {
        **done.as_dict(),
        "vectors": 0,
        "dry_run": 0,
    }


def test_recovery_001_orphans_are_told_and_rebuilt_when_so_asked(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    session_id = old.add([message(2), message(1), message(3)])
    old.write(f"{session_id}.json", b"{ broken")

    report = bring_in()
    assert not ChatSession.objects.exists()
    assert report.warnings == {"orphans": 1}
    assert report.messages_skipped == 3
    assert f"3 message files of session {session_id}" in caplog.text

    report = bring_in(rebuild_orphans=True)
    session = ChatSession.objects.get()
    assert (str(session.session_id), session.whatsapp_chat) == (session_id, CLIENT)
    messages = stored(session_id)
    assert [one.order_num for one in messages] == [1, 2, 3]
    assert session.message_counter == 3
    assert session.total_tokens == sum(one.tokens for one in messages)
    assert session.created_at == messages[0].received_at
    assert session.last_active == messages[2].received_at
    before = everything()
    again = bring_in(rebuild_orphans=True)
    assert everything() == before
    assert (again.sessions_there, again.messages_there) == (1, 3)
    assert bring_in().messages_there == 3, "no longer orphans"


def test_recovery_001_a_groups_orphans_come_back_to_the_group(
    old: OldFolder, bring_in: Import
) -> None:
    group = "120363000000000001@g.us"
    for number, person in ((1, CLIENT), (3, OTHER_CLIENT)):
        old.add_message(message(number, session_id=new_id(), sender=person, recipient=group))
    bring_in(rebuild_orphans=True)
    assert set(ChatSession.objects.values_list("chat__whatsapp_chat", flat=True)) == {group}


@pytest.mark.parametrize(
    "second", [{"sender": OTHER_CLIENT}, {"sender": None}], ids=["two people", "one of unknown"]
)
def test_recovery_001_nobody_is_given_a_session_by_guess(
    old: OldFolder, bring_in: Import, second: dict[str, Any]
) -> None:
    session_id = new_id()
    first = {"sender": None} if second["sender"] is None else {}
    old.add_message(message(1, session_id=session_id, **first))
    old.add_message(message(3, session_id=session_id, **second))
    report = bring_in(rebuild_orphans=True)
    assert not ChatSession.objects.exists()
    assert "WhatsApp chat" in report.skipped[0].reason


def test_the_command_prints_a_report(old: OldFolder) -> None:
    session_id = old.add([message(1), message(2)], last_active=at(24 * 30))
    out = io.StringIO()
    call_command("sessions_import", str(old.root), "--json", stdout=out)
    document = json.loads(out.getvalue())
    assert document["sessions"] == {"imported": 1, "expired": 1, "already_there": 0, "skipped": 0}
    assert document["messages"]["imported"] == document["vectors"] == 2
    assert len(stored(session_id)) == 2
    out = io.StringIO()
    call_command("sessions_import", str(old.root), stdout=out)
    assert "1 already there" in out.getvalue()


def test_the_command_names_what_was_skipped_and_fails(old: OldFolder) -> None:
    old.add([message(1)], last_active=at(24 * 30))
    for number in range(60):
        old.write(f"broken-{number:02}.json", b"[]")
    out = io.StringIO()
    with pytest.raises(CommandError, match="60 were skipped") as failed:
        call_command("sessions_import", str(old.root), "--no-vectors", stdout=out)
    assert failed.value.returncode == 1
    shown = out.getvalue()
    assert "broken-00.json: not a JSON object" in shown
    assert "broken-49.json" in shown
    assert "broken-50.json" not in shown
    assert "and 10 more" in shown
    assert Message.objects.count() == 1
    assert not MessageEmbedding.objects.exists()


def test_the_command_rebuilds_and_tries_out(old: OldFolder) -> None:
    old.add_message(message(1, session_id=new_id()))
    command = ("sessions_import", str(old.root), "--orphans", "rebuild")
    out = io.StringIO()
    call_command(*command, "--dry-run", stdout=out)
    assert out.getvalue().startswith("Nothing was stored")
    assert not Message.objects.exists()
    call_command(*command, stdout=io.StringIO())
    assert Message.objects.count() == 1


def test_the_id_that_stands_for_another_is_printed(old: OldFolder) -> None:
    old.add([message(1, message_id="m1")], session_id="session-1", last_active=at(24 * 30))
    out = io.StringIO()
    call_command("sessions_import", str(old.root), stdout=out)
    assert f"session-1 is {ChatSession.objects.get().session_id}" in out.getvalue()


def test_recent_sessions_by_the_real_clock_stay_active(old: OldFolder) -> None:
    now = timezone.now().isoformat()
    session_id = old.add(created_at=now, last_active=now)
    call_command("sessions_import", str(old.root), stdout=io.StringIO())
    assert ChatSession.objects.get(pk=UUID(session_id)).status == "active"


def test_two_chats_sessions_dont_mix_by_ids_that_only_look_alike(
    old: OldFolder, bring_in: Import
) -> None:
    """Embedded ids such as "1" are unique in their session only."""
    held = [message(1, message_id="1")]
    theirs = [message(1, message_id="1", sender=OTHER_CLIENT, recipient=BOT)]
    old.add(message_ids=[], messages=held)
    old.add(message_ids=[], messages=theirs, whatsapp_chat=OTHER_CLIENT)
    report = bring_in()
    assert report.messages_imported == 2
    assert not report.skipped
    assert uuid.UUID(int=0) not in Message.objects.values_list("pk", flat=True)
