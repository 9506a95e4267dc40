"""RECOVERY-001: a session is worked out afresh from its messages."""

from __future__ import annotations

import io
import json
import uuid
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import ChatSession, Message, MessageEmbedding
from tests.recovery.conftest import Import
from tests.recovery.old_files import CLIENT, OTHER_CLIENT, OldFolder, message, new_id
from tests.recovery.stored import everything, stored

pytestmark = pytest.mark.django_db


def rebuild(session_id: str, *options: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("session_rebuild", session_id, *options, "--json", stdout=out)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


@pytest.fixture
def session_id(old: OldFolder, bring_in: Import) -> str:
    """A session with three messages in the database."""
    session_id = old.add([message(number, f"text number {number}") for number in (1, 2, 3)])
    bring_in()
    return session_id


def test_recovery_001_what_is_wrong_in_a_session_is_put_right(session_id: str) -> None:
    right = everything()
    last = Message.objects.get(order_num=3)
    ChatSession.objects.update(message_counter=77, total_tokens=9_999, window_start=50)
    Message.objects.filter(order_num=2).update(tokens=400, terms=["wrong"], term_count=9)

    done = rebuild(session_id)

    assert done["before"]["message_counter"] == 77
    assert done["before"]["total_tokens"] == 9_999
    assert done["after"]["message_counter"] == 3
    assert done["after"]["window_start"] == 1
    assert done["after"]["last_active"] == last.received_at.isoformat()
    assert done["messages_changed"] == 1
    ChatSession.objects.update(last_active=right[2][0]["last_active"])
    assert everything() == right, "but for last_active, which is that of the last message"


def test_recovery_001_the_window_keeps_the_limit(session_id: str, settings: Any) -> None:
    settings.CLIENT_MAX_TOKENS = 6
    done = rebuild(session_id)
    assert (done["after"]["window_start"], done["after"]["total_tokens"]) == (2, 6)
    settings.GODFATHER_PHONE = [CLIENT]
    assert rebuild(session_id)["after"]["window_start"] == 1


def test_recovery_001_a_corrupt_file(old: OldFolder, caplog: pytest.LogCaptureFixture) -> None:
    session_id = old.add([message(3), message(1), message(2)])
    old.write(f"{session_id}.json", b"{ corrupt")
    old.add_message(message(1, session_id=new_id()))
    old.write("messages/broken.json", b"{")

    done = rebuild(session_id, "--from", str(old.root))

    session = ChatSession.objects.get()
    assert (str(session.session_id), session.whatsapp_chat) == (session_id, CLIENT)
    numbers = session.messages.order_by("order_num").values_list("order_num", flat=True)
    assert list(numbers) == [1, 2, 3]
    assert done["before"] is None
    assert done["after"]["messages"] == 3
    assert done["taken_in"]["messages"]["imported"] == 3
    assert done["taken_in"]["warnings"] == {"unreadable_messages": 1, "unreadable_session": 1}
    assert f"{session_id}.json can't be used" in caplog.text
    assert session.last_active == Message.objects.get(order_num=3).received_at
    before = everything()
    again = rebuild(session_id, "--from", str(old.root))
    assert everything() == before
    assert again["taken_in"]["messages"]["already_there"] == 3


def test_recovery_001_a_good_file_is_used_and_no_other_session_comes_in(old: OldFolder) -> None:
    documents = [message(1), message(2)]
    # The second was pruned from its session's list.
    ids = [documents[0]["message_id"]]
    session_id = old.add(documents, folder="expired", client_name="By Its File", message_ids=ids)
    old.add([message(1)])
    rebuild(session_id, "--from", str(old.root), "--no-vectors")
    session = ChatSession.objects.get()
    assert (session.status, session.chat.client_name) == ("expired", "By Its File")
    assert session.messages.count() == 2
    assert not MessageEmbedding.objects.exists()


def test_recovery_001_lost_messages_come_back(old: OldFolder, session_id: str) -> None:
    Message.objects.filter(order_num=2).delete()
    rebuild(session_id)
    done = rebuild(session_id, "--from", str(old.root))
    assert (done["before"]["messages"], done["after"]["messages"]) == (2, 3)
    lacking = Message.objects.filter(embeddings=None)
    assert not lacking.exists()


def test_recovery_001_an_old_name_is_found(old: OldFolder, bring_in: Import) -> None:
    old.add([message(1)], session_id="old-name")
    bring_in()
    assert rebuild("old-name")["session_id"] == str(ChatSession.objects.get().session_id)


def test_an_unknown_session_is_told_with_what_to_do(old: OldFolder) -> None:
    unknown = str(uuid.uuid4())
    with pytest.raises(CommandError, match=f"session_rebuild {unknown} --from DIR") as failed:
        rebuild(unknown)
    assert failed.value.returncode == 1
    old.add()
    with pytest.raises(CommandError, match="neither in the database nor in messages"):
        rebuild(unknown, "--from", str(old.root))
    with pytest.raises(CommandError, match="is not there") as failed:
        rebuild(unknown, "--from", str(old.root / "nowhere"))
    assert failed.value.returncode == 2


def test_messages_that_cant_be_used_are_told_and_the_command_fails(old: OldFolder) -> None:
    session_id = new_id()
    old.add_message(message(1, session_id=session_id))
    old.add_message(message(2, session_id=session_id, role="admin"))
    with pytest.raises(CommandError, match="1 of its messages were skipped"):
        rebuild(session_id, "--from", str(old.root))
    assert ChatSession.objects.get().messages.count() == 1


# Sessions whose own file is lost come back from their messages (RECOVERY-001).


def test_recovery_001_orphans_are_told_and_rebuilt_when_so_asked(
    old: OldFolder, bring_in: Import, caplog: pytest.LogCaptureFixture
) -> None:
    session_id = old.add([message(2), message(1), message(3)])
    old.write(f"{session_id}.json", b"{ broken")

    report = bring_in()
    assert not ChatSession.objects.exists()
    assert report.warnings == {"orphans": 1}
    assert report.messages["skipped"] == 3
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
    assert (again.sessions["already_there"], again.messages["already_there"]) == (1, 3)
    assert bring_in().messages["already_there"] == 3, "no longer orphans"


def test_recovery_001_a_groups_orphans_are_the_groups(old: OldFolder, bring_in: Import) -> None:
    group = "120363000000000001@g.us"
    for number, person in ((1, CLIENT), (3, OTHER_CLIENT)):
        old.add_message(message(number, session_id=new_id(), sender=person, recipient=group))
    bring_in(rebuild_orphans=True)
    assert set(ChatSession.objects.values_list("chat__whatsapp_chat", flat=True)) == {group}


@pytest.mark.parametrize(
    "second", [{"sender": OTHER_CLIENT}, {"sender": None}], ids=["two people", "one of unknown"]
)
def test_recovery_001_no_guesses(old: OldFolder, bring_in: Import, second: dict[str, Any]) -> None:
    session_id = new_id()
    first: dict[str, Any] = {"sender": None} if second["sender"] is None else {}
    old.add_message(message(1, session_id=session_id, **first))
    old.add_message(message(3, session_id=session_id, **second))
    report = bring_in(rebuild_orphans=True)
    assert not ChatSession.objects.exists()
    assert "WhatsApp chat" in report.skipped[0]["reason"]
