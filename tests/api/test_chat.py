"""One whole turn over the API, and its replay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from memoryproject.foundation.integrations.whatsapp.events import InboundMessage
from sessions_app.inbound.chat_api import pieces
from sessions_app.inbound.dependencies import build_intake_rules
from sessions_app.inbound.receive import events_receive
from sessions_app.models import InboundDelivery, Message, OutboundPart, Turn
from tests.api.calling import Api, error_of
from tests.loopback.openai_behaviours import fails, says
from tests.loopback.openai_server import OpenAIServer
from tests.world import message_from

CLIENT = "15550100123@c.us"
OTHER = "15550100456@c.us"
IDS = {"session_id", "message_id", "reply_message_id", "turn_id"}
KEYS = IDS | {"reply", "memories", "outcome", "error_code"}

pytestmark = pytest.mark.django_db


def say(api: Api, content: str, whatsapp_chat: str = CLIENT, **headers: str) -> Any:
    answer = api.post("chat/", {"whatsapp_chat": whatsapp_chat, "content": content}, **headers)
    assert answer.status_code == 200, answer.content
    return answer.json()


def waiting_from_whatsapp(text: str, whatsapp_chat: str = CLIENT) -> InboundMessage:
    """A message that came by a webhook and that no worker has answered yet."""
    event = message_from(whatsapp_chat, text, provider="console")
    events_receive(received=[event], rules=build_intake_rules(), enqueue=lambda _: None)
    return event


def test_a_turn_is_answered_stored_and_replayed(api: Api) -> None:
    remembered = say(api, "/remember TestCorp pays in 30 days")
    assert remembered["reply"].startswith("✅")
    answer = say(api, "When does TestCorp pay?")
    assert set(answer) == KEYS
    assert "TestCorp pays in 30 days" in answer["reply"]
    assert [memory["content"] for memory in answer["memories"]] == ["TestCorp pays in 30 days"]
    (recalled,) = answer["memories"]
    (memory,) = api.get("memories/").json()["results"]
    assert (recalled["memory_id"], recalled["created_at"]) == (
        memory["memory_id"], memory["created_at"],
    )  # fmt: skip
    message, reply = (
        Message.objects.get(pk=answer[name]) for name in ("message_id", "reply_message_id")
    )
    assert (message.content, reply.content) == ("When does TestCorp pay?", answer["reply"])
    assert str(message.session_id) == answer["session_id"]
    replay = api.get(f"turns/{answer['turn_id']}/").json()
    assert replay["message_id"] == answer["message_id"]
    assert replay["reply_message_id"] == answer["reply_message_id"]
    assert replay["recalled"] == answer["memories"]
    assert replay["prompt"][-1] == {"role": "user", "content": "When does TestCorp pay?"}
    assert replay["state"] == "sent"
    assert replay["created_at"].endswith("Z")


def test_commands_and_the_role_of_the_chat_work_as_they_do_there(api: Api, settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({OTHER})
    say(api, "/remember the safe code is 4711", OTHER)
    assert say(api, "what is the safe code?")["memories"] == []
    assert say(api, "what is the safe code?", OTHER)["memories"]
    assert "Starting fresh" in say(api, "/reset")["reply"]


def test_it_stands_behind_what_waits_in_that_chat_and_nothing_is_sent_to_whatsapp(api: Api) -> None:
    waiting_from_whatsapp("I was first")
    say(api, "I was second")
    said = Message.objects.filter(chat__whatsapp_chat=CLIENT, role="user").order_by("order_num")
    assert [message.content for message in said] == ["I was first", "I was second"]
    first, second = Turn.objects.order_by("id")
    assert first.state == second.state == "sent"
    assert first.reply_id is not None
    assert first.finished_at <= second.finished_at
    assert set(OutboundPart.objects.values_list("provider", flat=True)) == {"console"}


def test_where_memory_is_off_ids_are_null_and_nothing_is_kept(api: Api, settings: Any) -> None:
    settings.ENABLE_MEMORY_SYSTEM = False
    answer = say(api, "a secret that nobody keeps")
    assert answer["reply"]
    assert {name: answer[name] for name in IDS} == dict.fromkeys(IDS)
    assert answer["memories"] == []
    assert not Message.objects.exists()
    turn = Turn.objects.get()
    assert (turn.unstored_text, turn.unstored_reply, turn.replay.prompt) == ("", "", [])
    assert set(OutboundPart.objects.values_list("content", flat=True)) == {""}
    assert not InboundDelivery.objects.filter(raw__icontains="secret").exists()
    assert say(api, "/remember x")["reply"] == "Memory system is disabled"


def test_an_empty_message_is_answered_too(api: Api) -> None:
    answer = say(api, "")
    assert Message.objects.get(pk=answer["message_id"]).content == ""
    assert answer["reply"]


def test_a_group_that_is_never_answered_says_so(api: Api, settings: Any) -> None:
    settings.GROUP_POLICY = "never"
    body = {"whatsapp_chat": "120363000000000001@g.us", "content": "hello"}
    assert error_of(api.post("chat/", body), 409)["code"] == "not_answered"
    assert Message.objects.get().content == "hello"


def events_in(answer: Any) -> list[tuple[str, Any]]:
    text = b"".join(answer.streaming_content).decode()
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("asked", ["by the body", "by the header"])
def test_a_stream_tells_the_acceptance_the_pieces_and_the_whole(api: Api, asked: str) -> None:
    body: dict[str, Any] = {"whatsapp_chat": CLIENT, "content": "hello"}
    headers = {"Accept": "text/event-stream"} if asked == "by the header" else {}
    if not headers:
        body["stream"] = True
    answer = api.post("chat/", body, Idempotency_Key="s1", **headers)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/event-stream"
    (first, accepted), *deltas, (last, done) = events_in(answer)
    assert (first, last) == ("accepted", "done")
    assert {name for name, _ in deltas} == {"delta"}
    assert "".join(data["text"] for _, data in deltas) == done["reply"]
    assert set(done) == KEYS
    assert accepted["turn_id"] == done["turn_id"]
    again = events_in(api.post("chat/", body, Idempotency_Key="s1", **headers))
    assert again[-1] == ("done", done)
    assert Turn.objects.count() == 1
    error_of(api.post("chat/", {**body, "content": "else"}, Idempotency_Key="s1", **headers), 422)


@pytest.mark.django_db(transaction=True)
def test_a_stream_that_fails_ends_with_an_error_in_the_one_shape(api: Api, settings: Any) -> None:
    body = {"whatsapp_chat": CLIENT, "content": "hello", "stream": True}
    answer = api.post("chat/", body)
    # The turn is cancelled after it was accepted and before anybody answered it.
    Turn.objects.update(state="cancelled")
    name, error = events_in(answer)[-1]
    assert name == "error"
    assert set(error) == {"type", "errors"}
    assert error["errors"][0]["code"] == "not_answered"


@pytest.mark.parametrize("reply", ["", " ", "one", "a b c d e f g h i j", "\n x\n\n y  "])
def test_pieces_are_the_reply_to_the_byte(reply: str) -> None:
    assert "".join(pieces(reply)) == reply


# An answer that failed, over the API: it says so, and the same key asks again.


ASKED = {"whatsapp_chat": CLIENT, "content": "When do you open?"}
KEY = {"Idempotency-Key": "one"}


@pytest.fixture
def model(settings: Any) -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        settings.CHAT_MODEL = "openai"
        settings.OPENAI_API_KEY = "k"
        settings.OPENAI_BASE_URL = server.base_url
        yield server


def test_a_failed_answer_leaves_its_key_free_for_one_message(api: Api, model: OpenAIServer) -> None:
    model.script_chat(fails(404, "no such model"), says("We open at 9."))
    failed = api.post("chat/", ASKED, **KEY).json()
    assert (failed["outcome"], failed["error_code"]) == ("failed", "model_refused")
    answered = api.post("chat/", ASKED, **KEY)
    told = answered.json()
    assert "Idempotent-Replayed" not in answered.headers
    assert (told["reply"], told["outcome"]) == ("We open at 9.", "answered")
    assert told["error_code"] is None
    assert (told["message_id"], told["turn_id"]) == (failed["message_id"], failed["turn_id"])
    assert Message.objects.filter(role="user").count() == Turn.objects.count() == 1
    again = api.post("chat/", ASKED, **KEY)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == told
    replay = api.get(f"turns/{told['turn_id']}/").json()
    assert (replay["outcome"], replay["error_code"], replay["error"]) == ("answered", None, "")


def test_without_memory_a_key_asks_again_too(api: Api, model: OpenAIServer, settings: Any) -> None:
    settings.ENABLE_MEMORY_SYSTEM = False
    model.script_chat(fails(404, "no such model"), says("We open at 9."))
    assert api.post("chat/", ASKED, **KEY).json()["outcome"] == "failed"
    assert api.post("chat/", ASKED, **KEY).json()["reply"] == "We open at 9."
    assert model.chat_bodies[-1]["messages"][-1]["content"] == ASKED["content"]


@pytest.mark.django_db(transaction=True)
def test_a_stream_ends_with_its_outcome(api: Api, model: OpenAIServer) -> None:
    model.script_chat(fails(404, "no such model"))
    answer = api.post("chat/", {**ASKED, "stream": True})
    events = b"".join(answer.streaming_content).decode()
    done = json.loads(events.rpartition("event: done\ndata: ")[2])
    assert (done["outcome"], done["error_code"]) == ("failed", "model_refused")
