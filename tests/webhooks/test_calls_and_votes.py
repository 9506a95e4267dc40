"""Calls and votes in polls: lines of the timeline, with a text after a missed call on request."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from sessions_app.models import InboundDelivery, Message, Turn
from tests.doubles.recording_provider import RecordingProvider
from tests.webhooks.posting import post_cloud, post_green
from tests.world import CLIENT, World

pytestmark = pytest.mark.django_db

PHONE, OURS = "15550100123", "15550100001"
TEXT = "Sorry, calls can't be answered at this number. Please write to us here."


def cloud_call(**call: Any) -> dict[str, Any]:
    given = {"id": "wacid.A", "from": PHONE, "to": OURS, "timestamp": str(int(time.time()))}
    value = {
        "metadata": {"display_phone_number": OURS, "phone_number_id": "100000000000001"},
        "contacts": [{"profile": {"name": "Dana Sample"}, "wa_id": PHONE}],
        "calls": [{**given, "event": "terminate", "direction": "USER_INITIATED", **call}],
    }
    return {"entry": [{"id": "1", "changes": [{"field": "calls", "value": value}]}]}


def green(kind: str, **body: Any) -> dict[str, Any]:
    return {
        "typeWebhook": kind,
        "instanceData": {"idInstance": 1101000001, "wid": f"{OURS}@c.us"},
        "timestamp": int(time.time()),
        "idMessage": "ONE",
        **body,
    }


def vote(key: str, poll: str = "POLL", *, later: int = 0, **options: list[str]) -> dict[str, Any]:
    votes = [{"optionName": name, "optionVoters": voters} for name, voters in options.items()]
    data = {"stanzaId": poll, "name": "Which colour?", "votes": votes}
    body = green(
        "incomingMessageReceived",
        idMessage=key,
        senderData={"chatId": CLIENT, "sender": CLIENT},
        messageData={"typeMessage": "pollUpdateMessage", "pollMessageData": data},
    )
    body["timestamp"] += later
    return body


BY_US = {"direction": "BUSINESS_INITIATED", "from": OURS, "to": PHONE}


@pytest.mark.parametrize(
    ("body", "role", "text"),
    [
        (cloud_call(status="FAILED"), "user", "Missed call"),
        (cloud_call(status=["COMPLETED"], duration=0), "user", "Missed call"),
        (cloud_call(), "user", "Missed call"),
        (cloud_call(status=["COMPLETED"], duration=125), "user", "Call (2:05)"),
        (cloud_call(status="COMPLETED", duration="9"), "user", "Call (0:09)"),
        (cloud_call(status="COMPLETED", duration=12.7), "user", "Call (0:13)"),
        (cloud_call(start_time="1700000000", end_time="1700003605"), "user", "Call (60:05)"),
        (cloud_call(status="REJECTED"), "user", "Rejected call"),
        (cloud_call(status="FAILED", **BY_US), "assistant", "Our call, not answered"),
        (cloud_call(status="COMPLETED", duration=60, **BY_US), "assistant", "Our call (1:00)"),
        (green("incomingCall", **{"from": CLIENT, "status": "missed"}), "user", "Missed call"),
        (green("incomingCall", **{"from": CLIENT, "status": "declined"}), "user", "Missed call"),
        (green("incomingCall", **{"from": CLIENT, "status": "hungUp"}), "user", "Rejected call"),
        (green("incomingCall", **{"from": CLIENT, "status": "hangUp"}), "user", "Rejected call"),
        (green("incomingCall", **{"from": CLIENT, "status": "pickUp"}), "user", "Call"),
        (
            green("outgoingCall", **{"to": CLIENT, "status": "pickUp", "duration": 5}),
            "assistant",
            "Our call (0:05)",
        ),
    ],
)
def test_a_call_is_a_line_that_nobody_answers(
    client: Client, world: World, body: dict[str, Any], role: str, text: str
) -> None:
    post = post_cloud if "entry" in body else post_green
    for _ in range(2):
        assert post(client, body).status_code == 200
    (message,) = world.messages(CLIENT)
    assert (message.kind, message.role, message.content) == ("call", role, text)
    assert not Turn.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        cloud_call(event="connect", session={"sdp_type": "offer"}),
        cloud_call(id="", status="FAILED"),
        cloud_call(**{"from": "", "status": "FAILED"}),
        green("incomingCall", **{"from": CLIENT, "status": "offer"}),
        green("incomingCall", **{"from": "", "status": "missed"}),
        green("incomingCall", **{"from": CLIENT, "status": "new"}),
    ],
)
def test_what_is_no_call_that_is_over_leaves_a_trace(client: Client, body: dict[str, Any]) -> None:
    post = post_cloud if "entry" in body else post_green
    assert post(client, body).status_code == 200
    assert InboundDelivery.objects.get().outcome.startswith("ignored: a call")
    assert not Message.objects.exists()


def texted(client: Client, world: World, *calls: dict[str, Any]) -> list[str]:
    sent = len(world.provider.sent)
    for call in calls:
        post_cloud(client, call)
    world.work()
    return [part.text for part in world.provider.sent[sent:]]


def test_the_text_after_a_missed_call(client: Client, world: World, settings: Any) -> None:
    def missed(key: str, **call: Any) -> dict[str, Any]:
        return cloud_call(id=f"wacid.{key}", status="FAILED", **call)

    assert texted(client, world, missed("off")) == []
    settings.MISSED_CALL_TEXT = True
    two_days_ago = str(int(time.time()) - 2 * 86_400)
    assert texted(client, world, missed("old", timestamp=two_days_ago)) == []
    answered = cloud_call(id="wacid.answered", status="COMPLETED", duration=3)
    assert texted(client, world, answered, missed("ours", **BY_US)) == []
    (text,) = texted(client, world, missed("one"), missed("two"))
    assert text.endswith(TEXT)
    assert texted(client, world, missed("three")) == []
    Turn.objects.update(created_at=Turn.objects.get().created_at - timedelta(hours=1))
    assert texted(client, world, missed("an hour later")) == [TEXT]


def test_who_stopped_the_assistant_gets_no_text(
    client: Client, world: World, settings: Any
) -> None:
    settings.MISSED_CALL_TEXT = True
    settings.STOP_WORDS = ["stop"]
    world.say(CLIENT, "stop")
    assert texted(client, world, cloud_call(status="FAILED")) == []


def test_a_vote_is_read_and_a_newer_one_takes_its_place(client: Client, world: World) -> None:
    provider = RecordingProvider(name="green")
    world.use(providers={"green": provider})
    post_green(client, vote("1", green=[CLIENT], red=[]))
    post_green(client, vote("2", green=[], red=[CLIENT, "15550100777@c.us"], blue=["x@c.us"]))
    post_green(client, vote("2", green=[], red=[CLIENT]))
    post_green(client, vote("0", later=-60, blue=[CLIENT]))
    world.work()
    (sent,) = provider.sent
    assert sent.text.endswith("Voted in “Which colour?”: red")
    post_green(client, vote("3", later=1, green=[CLIENT], red=[CLIENT]))
    post_green(client, vote("4", "ANOTHER", later=2, day=[CLIENT]))
    post_green(client, vote("5", later=3, green=[], red=[]))
    # What can't be read takes nothing back.
    post_green(client, vote("6", later=4))
    said = [m.content for m in world.messages(CLIENT) if m.role == "user" and m.content]
    assert said == [
        "Voted in “Which colour?”: red",
        "Took the vote in “Which colour?” back",
        "Voted in “Which colour?”: day",
    ]
    browser = Client()
    browser.force_login(User.objects.create_superuser("admin", password="a-password"))
    chat = world.chat(CLIENT)
    shown = browser.get(f"/admin/sessions_app/chat/{chat.pk}/conversation/").content.decode()
    assert said[0] in shown
