"""Old sessions come in as they were, whichever generation wrote them."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

import pytest

from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.text.terms import index_text
from sessions_app.conversations.message_store import NewMessage, messages_add
from sessions_app.conversations.session_lifecycle import session_start
from sessions_app.models import Chat, ChatAddress, ChatSession, Message, MessageEmbedding, Turn
from sessions_app.models.chats import Limits
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.recovery.conftest import Import
from tests.recovery.old_files import BOT, CLIENT, NOW, OTHER_CLIENT, OldFolder, message, new_id
from tests.recovery.stored import at, everything, known_chat, stored
from tests.world import GODFATHER

pytestmark = pytest.mark.django_db


def test_ac_session_006_a_session_comes_in_whole(old: OldFolder, bring_in: Import) -> None:
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
    assert (report.sessions["imported"], report.messages["imported"]) == (1, 10)
    assert (report.vectors, MessageEmbedding.objects.count()) == (10, 10)
    assert not report.skipped
    assert not report.warnings


def vars_of(content: str) -> tuple[list[str], int]:
    indexed = index_text(content)
    return indexed.terms, indexed.length


def test_older_names_where_chat_id_is_the_session(old: OldFolder, bring_in: Import) -> None:
    session_id = new_id()
    one = message(1, chat_id=session_id)
    old.add_message(one)
    ids = [one["message_id"]]
    old.add(
        session_id=..., whatsapp_chat=..., chat_id=session_id, phone_number=CLIENT, message_ids=ids
    )
    bring_in()
    assert ChatSession.objects.get().whatsapp_chat == CLIENT
    assert len(stored(session_id)) == 1


def test_older_names_where_chat_id_is_the_chat(old: OldFolder, bring_in: Import) -> None:
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


def test_the_oldest_sessions_hold_their_messages(old: OldFolder, bring_in: Import) -> None:
    held = [message(number, message_id=..., order_num=..., tokens=...) for number in (1, 2, 3)]
    session_id = old.add(message_ids=..., messages=held)
    first = bring_in()
    assert [one.order_num for one in stored(session_id)] == [1, 2, 3]
    assert [one.content for one in stored(session_id)] == ["message 1", "message 2", "message 3"]
    again = bring_in()
    assert (first.messages["imported"], again.messages["imported"]) == (3, 0)
    assert again.messages["already_there"] == 3


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
    assert (again.sessions["already_there"], again.messages["already_there"]) == (1, 2)
    assert everything() == before


def test_the_known_chat_gets_the_session(old: OldFolder, bring_in: Import) -> None:
    chat = known_chat(client_name="As Known")
    old.add([message(1)])
    bring_in()
    assert ChatSession.objects.get().chat == chat
    chat.refresh_from_db()
    assert (chat.client_name, chat.provider, chat.number_id) == ("As Known", "cloud", "1")


def test_an_old_session_moves_nobody_to_an_old_number(old: OldFolder, bring_in: Import) -> None:
    chat = known_chat()
    ChatAddress.objects.create(chat=chat, provider="cloud", address=OTHER_CLIENT)
    links = list(ChatAddress.objects.order_by("id").values())
    old.add([message(1)], whatsapp_chat=OTHER_CLIENT)
    bring_in()
    assert ChatSession.objects.get().chat == chat
    assert Chat.objects.get().whatsapp_chat == CLIENT
    assert list(ChatAddress.objects.order_by("id").values()) == links


def test_a_left_numbers_session_is_its_former_owners(old: OldFolder, bring_in: Import) -> None:
    chat = known_chat()
    ChatAddress.objects.create(chat=chat, provider="cloud", address=OTHER_CLIENT, left_at=NOW)
    old.add([message(1)], whatsapp_chat=OTHER_CLIENT)
    bring_in()
    assert ChatSession.objects.get().chat == chat
    assert Chat.objects.get().whatsapp_chat == CLIENT


def test_pruned_messages_come_in_too(old: OldFolder, bring_in: Import) -> None:
    documents = [message(number) for number in range(1, 6)]
    session_id = old.add(documents, message_ids=[one["message_id"] for one in documents[3:]])
    report = bring_in()
    assert [one.order_num for one in stored(session_id)] == [1, 2, 3, 4, 5]
    assert not report.warnings


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


def test_sessions_with_ids_that_look_alike_dont_mix(old: OldFolder, bring_in: Import) -> None:
    """Embedded ids such as "1" are unique in their session only."""
    held = [message(1, message_id="1")]
    theirs = [message(1, message_id="1", sender=OTHER_CLIENT, recipient=BOT)]
    old.add(message_ids=[], messages=held)
    old.add(message_ids=[], messages=theirs, whatsapp_chat=OTHER_CLIENT)
    report = bring_in()
    assert report.messages["imported"] == 2
    assert not report.skipped
    assert uuid.UUID(int=0) not in Message.objects.values_list("pk", flat=True)


# What an import makes of sessions that go on, ended, or are there already.


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
def test_an_idle_session_expires(
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
    assert report.sessions["expired"] == 1


def test_of_two_active_sessions_the_last_stays_active(old: OldFolder, bring_in: Import) -> None:
    older = old.add([message(1)], last_active=at(3), created_at=at(9))
    newest = old.add([message(1)], last_active=at(1), created_at=at(9))
    old.add([message(1)], last_active=at(2), created_at=at(9))
    report = bring_in()
    assert str(ChatSession.objects.get(status="active").session_id) == newest
    expired = ChatSession.objects.get(pk=older)
    assert expired.status == "expired"
    assert expired.expired_at == NOW, "not later than now"
    assert report.warnings == {"another_session_active": 2}


def test_the_active_session_here_stays_active(old: OldFolder, bring_in: Import) -> None:
    there = session_start(chat=known_chat(), now=NOW - timedelta(hours=5))
    old.add([message(1)], last_active=at(1))
    report = bring_in()
    assert ChatSession.objects.get(status="active") == there
    assert report.sessions["expired"] == 1
    assert report.warnings == {"another_session_active": 1}


def test_running_it_again_changes_nothing(old: OldFolder, bring_in: Import) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        old.add([message(number) for number in (1, 2, 2)], whatsapp_chat=chat)
    old.add([message(1)], folder="expired")
    bring_in()
    before = everything()
    again = bring_in()
    assert everything() == before
    assert (again.sessions["already_there"], again.sessions["imported"]) == (3, 0)
    assert (again.messages["already_there"], again.messages["imported"]) == (7, 0)
    assert (again.vectors, again.skipped, again.warnings) == (0, [], {})


def test_what_is_lacking_is_added_at_free_numbers(old: OldFolder, bring_in: Import) -> None:
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
    assert (report.messages["imported"], report.messages["already_there"]) == (1, 2)
    (refused,) = report.skipped
    assert refused["reason"].startswith("order_num: another message")
    assert ChatSession.objects.get().message_counter == 3


def test_a_second_import_disturbs_no_session(old: OldFolder, bring_in: Import) -> None:
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


def test_many_messages_come_in_with_vectors(old: OldFolder, bring_in: Import) -> None:
    documents = [message(1, message_id=new_id(), order_num=number) for number in range(1, 521)]
    old.add(messages=documents, message_ids=[])
    embedder = HashingEmbedder()
    report = bring_in(embedder=embedder)
    assert report.messages["imported"] == report.vectors == 520
    assert MessageEmbedding.objects.count() == 520
    assert max(len(call) for call in embedder.calls) == 200


def test_missing_vectors_are_made_by_the_next_run(old: OldFolder, bring_in: Import) -> None:
    old.add([message(1)])
    old.add([message(1)], whatsapp_chat=OTHER_CLIENT)
    failing = HashingEmbedder(failure=EmbedderError("down"))
    report = bring_in(embedder=failing)
    assert report.messages["imported"] == 2
    assert report.warnings == {"no_vectors": 1}
    assert len(failing.calls) == 1, "it is not asked for every session"
    assert bring_in().vectors == 2
