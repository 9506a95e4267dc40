"""The audit log over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from memoryproject.foundation.audit.audit_events import (
    COMMAND_LINE,
    Actor,
    audit_key,
    audit_record,
    log_path,
)
from memoryproject.foundation.audit.chain import audit_seal
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat
from tests.api.calling import Api, api_with, error_of

CHAT = "15550100123@c.us"


@pytest.fixture
def recorded(db: None) -> Chat:
    chat = Chat.objects.create(whatsapp_chat=CHAT)
    for n in range(12):
        audit_record("export", COMMAND_LINE, "memories", n=n)
    audit_record("conversation.read", Actor("staff", "boss"), "chat", chat.pk)  # fmt: skip
    return chat


def test_events_come_newest_first_in_pages_and_tell_no_person(api: Api, recorded: Chat) -> None:
    found = api.walk("audit/?limit=5")
    # Making the token is one of them, too.
    assert len(found) == 14
    assert [each["id"] for each in found] == sorted((each["id"] for each in found), reverse=True)
    read = next(each for each in found if each["action"] == "conversation.read")
    assert (read["actor_kind"], read["actor"]) == ("staff", "boss")
    assert read["object_id"] == read["chat"]
    assert read["chat"].startswith("p-")
    assert read["at"].endswith("Z")
    assert CHAT not in str(found)
    assert str(recorded.pk) not in str(found)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("action=export", 12),
        ("actor=boss", 1),
        ("actor_kind=command", 13),
        ("object_type=memories", 12),
        ("object_id=nothing", 0),
        ("chat=p-nobody", 0),
        (f"whatsapp_chat={CHAT}", 1),
        ("whatsapp_chat=1@c.us", 0),
        ("since=2999-01-01T00:00:00Z", 0),
        ("until=2999-01-01T00:00:00Z", 14),
        ("action=export&actor=boss", 0),
    ],
)
def test_events_are_filtered(api: Api, recorded: Chat, query: str, count: int) -> None:
    assert len(api.walk(f"audit/?{query}")) == count


@pytest.fixture
def unsealed(transactional_db: None, tmp_path: Any) -> Iterator[None]:
    """A log of its own."""
    with override_settings(LOG_DIR=tmp_path):
        assert tmp_path == settings.LOG_DIR
        yield


@pytest.mark.usefixtures("unsealed")
def test_the_log_is_verified_and_an_edit_is_found() -> None:
    api = api_with("audit")
    audit_record("export", COMMAND_LINE, "memories")
    waiting = api.get("audit/verify/").json()
    assert (waiting["verified"], waiting["events"], waiting["waiting"]) == (True, 0, 2)
    assert not AuditEvent.objects.exclude(seal="").exists()
    audit_seal(key=audit_key(), log_path=log_path())
    report = api.get("audit/verify/")
    assert report.status_code == 200
    assert report.json()["verified"] is True
    assert report.json()["events"] == 2
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_auditevent DISABLE TRIGGER USER")
        cursor.execute("UPDATE audit_auditevent SET actor = 'nobody' WHERE action = 'export'")
        cursor.execute("ALTER TABLE audit_auditevent ENABLE TRIGGER USER")
    found = api.get("audit/verify/").json()
    assert found["verified"] is False
    assert [each["kind"] for each in found["findings"]] == ["row_changed"]
    assert all(found["findings"][0][name] for name in ("where", "text", "advice"))
    error_of(api.get("audit/verify/?x=1"), 400)
