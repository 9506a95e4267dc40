"""Sessions over the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import Chat, ChatSession
from tests.api.calling import Api, error_of

pytestmark = pytest.mark.django_db

CLIENT = "15550100123@c.us"
OTHER = "15550100456@c.us"


def opened(api: Api, whatsapp_chat: str = CLIENT) -> Any:
    answer = api.post("sessions/", {"whatsapp_chat": whatsapp_chat})
    assert answer.status_code in (200, 201), answer.content
    return answer.json()


def test_the_active_session_is_begun_once(api: Api) -> None:
    first = api.post("sessions/", {"whatsapp_chat": CLIENT})
    again = api.post("sessions/", {"whatsapp_chat": CLIENT})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first.json()["status"] == "active"
    assert first.json()["created_at"].endswith("Z")
    event = AuditEvent.objects.get(action="session.create")
    assert (event.actor_kind, event.actor) == ("api", "tests")


def test_one_session_is_read_by_its_id(api: Api) -> None:
    session = opened(api)
    assert api.get(f"sessions/{session['session_id']}/").json() == session
    error_of(api.get("sessions/0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10/"), 404)


def test_lists_are_filtered_and_leave_archived_ones_out(api: Api) -> None:
    first, second = opened(api), opened(api, OTHER)
    api.post(f"sessions/{first['session_id']}/expire/")
    ChatSession.objects.filter(pk=first["session_id"]).update(
        last_active=timezone.now() - timedelta(days=3)
    )

    def listed(query: str) -> list[str]:
        return [row["session_id"] for row in api.walk(f"sessions/{query}")]

    assert listed("") == [second["session_id"], first["session_id"]]
    assert listed("?status=expired") == [first["session_id"]]
    assert listed(f"?whatsapp_chat={OTHER}") == [second["session_id"]]
    assert listed("?whatsapp_chat=nobody@c.us") == []
    since = (timezone.now() - timedelta(days=1)).isoformat()
    assert listed(f"?since={since}") == [second["session_id"]]
    assert len(listed("?status=active&status=expired")) == 2
    ChatSession.objects.filter(pk=first["session_id"]).update(status="archived")
    assert listed("?status=archived&status=active") == [second["session_id"], first["session_id"]]
    assert listed("") == [second["session_id"]]
    assert listed("?status=archived") == [first["session_id"]]


def test_a_reset_ends_a_session_and_begins_the_next(api: Api) -> None:
    session = opened(api)
    answer = api.post(f"sessions/{session['session_id']}/reset/")
    assert answer.status_code == 201
    assert answer.json()["session_id"] != session["session_id"]
    assert opened(api) == answer.json()
    old = api.get(f"sessions/{session['session_id']}/").json()
    assert old["status"] == "expired"
    assert old["expired_at"].endswith("Z")
    error_of(api.post(f"sessions/{session['session_id']}/reset/"), 409)


def test_a_session_expires_when_it_is_told_to(api: Api) -> None:
    session = opened(api)
    ended = api.post(f"sessions/{session['session_id']}/expire/").json()
    assert ended["status"] == "expired"
    assert api.post(f"sessions/{session['session_id']}/expire/").json() == ended
    event = AuditEvent.objects.get(action="session.expire")
    assert (event.actor_kind, event.actor) == ("api", "tests")


def test_where_memory_is_off_nothing_is_begun(api: Api, settings: Any) -> None:
    session = opened(api, OTHER)
    settings.ENABLE_MEMORY_SYSTEM = False
    error_of(api.post("sessions/", {"whatsapp_chat": CLIENT}), 403)
    assert not Chat.objects.filter(whatsapp_chat=CLIENT).exists()
    Chat.objects.update(memory_enabled=True)
    assert api.post(f"sessions/{session['session_id']}/reset/").status_code == 201


def test_err_session_007_an_unusual_chat_is_taken_with_a_warning(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    assert api.post("sessions/", {"whatsapp_chat": "someone@c.us"}).status_code == 201
    assert any("Unusual WhatsApp chat id" in record.message for record in caplog.records)


def test_the_address_of_a_new_session_is_told(api: Api) -> None:
    answer = api.post("sessions/", {"whatsapp_chat": "15550100777@c.us"})
    session_id = answer.json()["session_id"]
    assert api.get(answer.headers["Location"]).json()["session_id"] == session_id
    again = api.post("sessions/", {"whatsapp_chat": "15550100777@c.us"})
    assert "Location" not in again.headers
    following = api.post(f"sessions/{session_id}/reset/")
    assert following.headers["Location"].endswith(f"{following.json()['session_id']}/")
