"""An answer that failed, over the API: it says so, and the same key asks again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.models import Message, Turn
from tests.api.calling import Api
from tests.loopback.openai_behaviours import fails, says
from tests.loopback.openai_server import OpenAIServer

CLIENT = "15550100123@c.us"
ASKED = {"whatsapp_chat": CLIENT, "content": "When do you open?"}
KEY = {"Idempotency-Key": "one"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(settings: Any) -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        settings.CHAT_MODEL = "openai"
        settings.OPENAI_API_KEY = "k"
        settings.OPENAI_BASE_URL = server.base_url
        yield server


def test_a_failed_answer_leaves_its_key_free_and_its_message_once(
    api: Api, model: OpenAIServer
) -> None:
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


def test_where_memory_is_off_the_same_key_asks_again_too(
    api: Api, model: OpenAIServer, settings: Any
) -> None:
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
