"""Seed 003 over REST: summaries' metadata, and what a message and a session are."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from memoryproject.foundation.integrations.whatsapp.events import Media
from tests.api.calling import api_with, error_of
from tests.sessions.summing import summaries, talk_to
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from


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
