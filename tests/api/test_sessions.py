"""Sessions over the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.models import Chat, ChatSession
from tests.api.calling import Api, api_with, error_of
from tests.sessions.summing import summaries, talk_to
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db


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
    first, second = opened(api), opened(api, OTHER_CLIENT)
    api.post(f"sessions/{first['session_id']}/expire/")
    ChatSession.objects.filter(pk=first["session_id"]).update(
        last_active=timezone.now() - timedelta(days=3)
    )

    def listed(query: str) -> list[str]:
        return [row["session_id"] for row in api.walk(f"sessions/{query}")]

    assert listed("") == [second["session_id"], first["session_id"]]
    assert listed("?status=expired") == [first["session_id"]]
    assert listed(f"?whatsapp_chat={OTHER_CLIENT}") == [second["session_id"]]
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
    session = opened(api, OTHER_CLIENT)
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


# Summaries of a session, and what a message and a session are.


def test_a_summary_is_read_by_the_id_that_its_message_names(world: World) -> None:
    world.summarizing(4)
    talk_to(world, 2)
    world.sum_up(CLIENT)
    api = api_with("read")
    path = f"sessions/{world.session(CLIENT).pk}/"
    messages = api.walk(f"{path}messages/")
    (said,) = [message for message in messages if message["role"] == "summary"]
    key = said["metadata"]["summaryMetadataId"]
    summary = api.get(f"{path}summaries/{key}/").json()
    covered = [message for message in messages if message["role"] != "summary"]
    assert summary["summary_message_id"] == said["message_id"]
    assert summary["session_id"] == said["session_id"]
    assert summary["summarized_message_ids"] == [message["message_id"] for message in covered]
    times = sorted(message["timestamp"] for message in covered)
    assert summary["timestamp_range"] == {"start": times[0], "end": times[-1]}
    assert (summary["number"], summary["first_order"], summary["last_order"]) == (1, 1, 4)
    talk_to(world, 2, start=3)
    world.sum_up(CLIENT)
    listed = api.walk(f"{path}summaries/?limit=1")
    assert [row["number"] for row in listed] == [1, 2]
    assert listed[0] == summary


def test_summaries_are_within_their_session_and_reach(world: World) -> None:
    world.summarizing(4)
    talk_to(world, 2)
    world.sum_up(CLIENT)
    world.say(OTHER_CLIENT, "hello")
    (made,) = summaries()
    api = api_with("read")
    own, other = world.session(CLIENT), world.session(OTHER_CLIENT)
    assert api.get(f"sessions/{own.pk}/summaries/{made.pk}/").status_code == 200
    error_of(api.get(f"sessions/{other.pk}/summaries/{made.pk}/"), 404)
    error_of(api.get(f"sessions/{own.pk}/summaries/{uuid4()}/"), 404)
    error_of(api.get(f"sessions/{uuid4()}/summaries/"), 404)
    bound = api_with("read", chat_ids=[other.chat_id])
    error_of(bound.get(f"sessions/{own.pk}/summaries/{made.pk}/"), 404)


def test_a_picture_is_told_from_an_empty_text(world: World) -> None:
    media = Media(media_id="123", url="https://files.example/secret", mime_type="image/jpeg")
    world.receive(message_from(CLIENT, "", kind="image", media=media), message_from(CLIENT, "hi"))
    api = api_with("read")
    rows = api.walk(f"sessions/{world.session(CLIENT).pk}/messages/")
    picture, text = [row for row in rows if row["role"] == "user"]
    assert picture["kind"] == "image"
    # Without the link, by which anybody could fetch the file.
    assert picture["media"] == {"media_id": "123", "mime_type": "image/jpeg"}
    assert (text["kind"], text["media"]) == ("text", {})


def test_a_session_tells_its_person(world: World, settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    world.say(CLIENT, "hello")
    world.say(GODFATHER, "hello")
    api = api_with("read", "write")
    rows = {row["whatsapp_chat"]: row for row in api.walk("sessions/")}
    person = rows[CLIENT]
    phone = CLIENT.removesuffix("@c.us")
    shown = (person["client_name"], person["client_phone"], person["user_role"])
    assert shown == ("Test User", phone, "client")
    assert rows[GODFATHER]["user_role"] == "godfather"
    assert api.get(f"sessions/{person['session_id']}/").json() == person
    assert api.post("sessions/", {"whatsapp_chat": CLIENT}).json() == person
