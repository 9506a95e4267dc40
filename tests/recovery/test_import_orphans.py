"""Sessions whose own file is lost come back from their messages (RECOVERY-001)."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_app.models import ChatSession
from tests.recovery.conftest import Import
from tests.recovery.old_files import (
    CLIENT,
    OTHER_CLIENT,
    OldFolder,
    message,
    new_id,
)
from tests.recovery.stored import everything, stored

pytestmark = pytest.mark.django_db


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
    first: dict[str, Any] = {"sender": None} if second["sender"] is None else {}
    old.add_message(message(1, session_id=session_id, **first))
    old.add_message(message(3, session_id=session_id, **second))
    report = bring_in(rebuild_orphans=True)
    assert not ChatSession.objects.exists()
    assert "WhatsApp chat" in report.skipped[0].reason
