"""Where the assistant asks back, people press a button or a row, or type a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories_app.models import Memory
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from sessions_app.models import Message, Turn
from sessions_app.turns.facade import chat_pause
from sessions_app.turns.queue import chat_answer
from tests.doubles.recording_provider import RecordingProvider
from tests.loopback.graph import GraphServer
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

CLOSED = "That choice is no longer open"


@dataclass
class Phone:
    """A person's WhatsApp at the Cloud API's stand-in."""

    world: World
    graph: GraphServer
    chat: str = CLIENT

    def say(self, text: str, **changes: Any) -> dict[str, Any]:
        """Send a message, and return the answer as Meta got it."""
        self.world.receive(message_from(self.chat, text, **changes))
        self.world.work()
        return self.graph.sent[-1]

    def press(self, message: dict[str, Any], place: int, **changes: Any) -> str:
        """Press a button or a row of a message; return the answer's text."""
        pressed = offered(message)[place]
        metadata = {"button": {"id": pressed["id"], "title": pressed["title"]}}
        kind = changes.pop("kind", "interactive")
        return text_in(self.say(pressed["title"], kind=kind, metadata=metadata, **changes))


def offered(message: dict[str, Any]) -> list[dict[str, str]]:
    action = message["interactive"]["action"]
    if "buttons" in action:
        return [button["reply"] for button in action["buttons"]]
    return list(action["sections"][0]["rows"])


def text_in(message: dict[str, Any]) -> str:
    body: dict[str, str] = message.get("text") or message["interactive"]["body"]
    return body["body" if "text" in message else "text"]


@pytest.fixture
def graph() -> Iterator[GraphServer]:
    with GraphServer(access_token="secret-token") as server:
        yield server


@pytest.fixture
def phone(world: World, graph: GraphServer) -> Phone:
    cloud = CloudProvider(
        api_url=f"{graph.url}/v24.0",
        phone_number_id=graph.phone_number_id,
        access_token="secret-token",
    )
    world.use(providers={**world.dependencies.providers, "cloud": cloud})
    return Phone(world, graph)


def remembered(phone: Phone, count: int) -> None:
    for number in range(count):
        phone.say(f"/remember cake number {number} is Dana's")


def kept() -> list[str]:
    return sorted(Memory.objects.values_list("content", flat=True))


@pytest.mark.parametrize(
    ("count", "kind"), [(2, "button"), (3, "button"), (4, "list"), (12, "list")]
)
def test_several_matches_are_offered_and_a_press_forgets_one(
    phone: Phone, count: int, kind: str
) -> None:
    remembered(phone, count)
    asked = phone.say("/forget cake")

    assert asked["interactive"]["type"] == kind
    assert [each["title"] for each in offered(asked)] == [str(n + 1) for n in range(min(count, 10))]
    second = text_in(asked).partition("\n2. ")[2].partition("\n")[0]
    assert phone.press(asked, 1).startswith("🗑")
    assert second not in kept()
    assert len(kept()) == count - 1
    # A second press, of this button or another one, does nothing.
    for place in (1, 0):
        assert phone.press(asked, place).startswith(CLOSED)
    assert len(kept()) == count - 1


IN_WORDS = [
    *("number two please", "the second one", "Second.", "option two", "מספר שתיים", "השני בבקשה"),
    *("el segundo", "la segunda por favor", "o segundo", "le deuxième", "das zweite bitte", "zwei"),
    *("il secondo", "второй", "другий", "ikincisi", "दूसरा", "yang kedua", "الثاني"),
]


@pytest.mark.parametrize("said", ["2", " 2. ", "number 2", "٢", *IN_WORDS])
def test_a_number_right_after_the_question_is_the_choice(phone: Phone, said: str) -> None:
    remembered(phone, 2)
    second = text_in(phone.say("/forget cake")).partition("\n2. ")[2].partition("\n")[0]

    assert text_in(phone.say(said)).startswith("🗑")
    assert second not in kept()


@pytest.mark.parametrize(
    "said",
    [
        *("3", "0", "2 cakes", "5551234567", "the third one", "two cakes", "just a second please"),
        *("one moment", "second thoughts", "un momento", "zwei Kuchen", "יום ראשון", "по одному"),
    ],
)
def test_what_is_no_choice_is_a_message(phone: Phone, said: str) -> None:
    remembered(phone, 2)
    phone.say("/forget cake")
    phone.say(said)

    assert len(kept()) == 2
    assert Turn.objects.latest("id").replay.model == "scripted"


def test_a_number_later_is_a_message(phone: Phone) -> None:
    remembered(phone, 2)
    phone.say("/forget cake")
    phone.say("what time is it?")
    phone.say("2")

    assert len(kept()) == 2


def test_one_match_is_asked_about_with_yes_and_no(phone: Phone) -> None:
    phone.say("/remember cake number 1 is Dana's")
    owner = replace(phone, chat=GODFATHER)
    asked = owner.say("/forget cake")

    assert [each["title"] for each in offered(asked)] == ["Yes", "No"]
    assert "nothing was forgotten" in owner.press(asked, 1)
    assert owner.press(asked, 0).startswith(CLOSED)
    owner.say("/forget cake")
    assert "nothing was forgotten" in text_in(owner.say("\u200f*Ｎｏ* 🙏"))
    owner.say("/forget cake")
    assert text_in(owner.say("ＹÉS!")).startswith("🗑")
    assert kept() == []


def test_only_the_open_question_counts(phone: Phone) -> None:
    remembered(phone, 3)
    first = phone.say("/forget cake")
    # Somebody else can't press it, nor does a button with another id do anything.
    stranger = replace(phone, chat=OTHER_CLIENT)
    assert stranger.press(first, 0).startswith(CLOSED)
    offered(first)[0]["id"] = offered(first)[0]["id"].rpartition(".")[0] + ".9"
    assert phone.press(first, 0).startswith(CLOSED)
    # Another question, and another list, close it.
    second = phone.say("/forget cake")
    assert phone.press(first, 1).startswith(CLOSED)
    phone.say("/memories")
    assert phone.press(second, 1).startswith(CLOSED)
    # So does time.
    third = phone.say("/forget cake")
    late = timezone.now() + timedelta(minutes=11)
    Turn.objects.filter(replay__isnull=False).update(finished_at=late - timedelta(minutes=11))
    assert phone.press(third, 1, timestamp=late).startswith(CLOSED)
    assert len(kept()) == 3


def test_a_memory_that_is_gone_is_told(phone: Phone) -> None:
    remembered(phone, 2)
    asked = phone.say("/forget cake")
    second = text_in(asked).partition("\n2. ")[2].partition("\n")[0]
    phone.world.forget("memory", Memory.objects.get(content=second).pk)

    assert "already gone" in phone.press(asked, 1)
    assert len(kept()) == 1


def test_the_words_of_a_choice_are_none_of_the_memory(phone: Phone) -> None:
    remembered(phone, 4)
    asked = phone.say("/forget cake")
    phone.press(asked, 1)

    assert "cake" not in str(offered(asked))


def test_a_restart_before_sending_keeps_the_buttons(phone: Phone) -> None:
    remembered(phone, 2)
    cloud = phone.world.dependencies.providers
    # It isn't reached until the server is restarted.
    away = CloudProvider(api_url="http://127.0.0.1:9/v1", phone_number_id="1", access_token="x")
    phone.world.use(providers={**cloud, "cloud": away})
    phone.say("/forget cake")
    turn = Turn.objects.latest("id")
    assert turn.state == "replied"
    phone.world.use(providers=cloud)
    Turn.objects.update(not_before=None)
    chat_answer(chat_id=turn.chat_id, dependencies=phone.world.dependencies)

    assert [each["title"] for each in offered(phone.graph.sent[-1])] == ["1", "2"]


def test_a_press_is_a_command_while_the_assistant_is_paused(phone: Phone) -> None:
    remembered(phone, 2)
    paused = phone.say("/forget cake")
    chat_id = phone.world.chat(CLIENT).pk
    chat_pause(chat_id=chat_id, until=None, by=None, actor=SYSTEM, now=timezone.now())

    assert phone.press(paused, 1).startswith("🗑")
    press = Message.objects.filter(role="user").latest("order_num")
    assert press.metadata["command"] == "forget"


def test_green_api_and_groups_get_text(phone: Phone) -> None:
    remembered(phone, 2)
    group = {"group_id": "120363000000000001@g.us", "mentions_us": True}
    phone.say("@bot /remember cake number 1 is here", **group)
    phone.say("@bot /remember cake number 2 is here", **group)
    asked = phone.say("@bot /forget cake", **group)
    assert asked["type"] == "text"
    assert text_in(phone.say("@bot 1", **group)).startswith("🗑")

    green = RecordingProvider(name="green", text_limit=20_000)
    phone.world.use(providers={**phone.world.dependencies.providers, "green": green})
    by_green = {"provider": "green", "number_id": "1101"}
    phone.say("/forget cake", **by_green)
    assert "Which of these" in green.sent[-1].text
    phone.say("1", **by_green)
    assert green.sent[-1].text.startswith("🗑")


def test_a_refused_form_is_sent_as_text(phone: Phone) -> None:
    remembered(phone, 2)
    phone.graph.refuses_choices = True
    asked = phone.say("/forget cake")

    assert asked["type"] == "text"
    assert text_in(phone.say("1")).startswith("🗑")


def test_staff_see_what_was_offered(phone: Phone, admin_client: Client) -> None:
    remembered(phone, 2)
    asked = phone.say("/forget cake")
    phone.press(asked, 1)
    question = Message.objects.filter(metadata__has_key="choices").get()
    turn = Turn.objects.get(reply=question)
    for page in (
        f"/admin/sessions_app/chat/{turn.chat_id}/conversation/",
        f"/admin/sessions_app/turn/{turn.pk}/change/",
    ):
        shown = admin_client.get(page).content.decode()
        assert "<bdi>[1]</bdi> <bdi>[2]</bdi>" in shown
