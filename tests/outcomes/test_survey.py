"""People are asked with one tap whether it helped: whom, when, and what their answer does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from sessions_app.models import (
    Chat,
    ChatAccess,
    ChatPause,
    ChatSession,
    Message,
    Rule,
    SessionOutcome,
    Turn,
    TurnReplay,
)
from sessions_app.outcomes.judge import sessions_judge, verdict_of
from sessions_app.rules import Outlet, chats_due
from sessions_app.surveys import surveys_ask
from sessions_app.takeover.facade import OwnNumber, Writer
from tests.dashboard.staff import page
from tests.loopback.graph import GraphServer
from tests.shown import words_of
from tests.webhooks.conftest import cloud_text, configured, green_text  # noqa: F401
from tests.webhooks.posting import post_cloud, post_green
from tests.world import CLIENT, GODFATHER, World, message_from, remember

pytestmark = pytest.mark.django_db
OPEN = "Until when are you open on Friday?"
ASKS = "Did that help?"
PAGE = "/admin/sessions_app/turn/outcomes/"


@pytest.fixture(autouse=True)
def known(world: World) -> None:
    world.with_answer_rules(min_similarity=0.0)
    world.with_rules(surveys=True)
    remember(world, "We are open on Friday until 14:00")


def pass_time(**time: float) -> None:
    ago = timedelta(**time)
    Message.objects.update(received_at=F("received_at") - ago, timestamp=F("timestamp") - ago)
    Turn.objects.update(created_at=F("created_at") - ago, asked_at=F("asked_at") - ago)
    ChatSession.objects.update(last_active=F("last_active") - ago)


def ask(world: World, **passed: float) -> int:
    """Let the time pass, ask whom is to be asked, and send it; return how many."""
    pass_time(**(passed or {"minutes": 61}))
    writer = Writer(None, SYSTEM, world.rules, lambda _chat: None, timezone.now())
    outlet = Outlet(writer, world.dependencies.providers, OwnNumber("cloud"))
    days = timedelta(days=7)
    asked = surveys_ask(every=days, outlet=outlet, embedder=world.dependencies.embedder)
    world.work()
    return asked


def outcome(world: World) -> SessionOutcome:
    """End the session that was asked about, and judge it."""
    now = timezone.now()
    turn = Turn.objects.filter(context__has_key="survey").earliest("pk")
    session = ChatSession.objects.filter(pk=turn.context["survey"])
    session.filter(status="active").update(status="expired", expired_at=now)
    sessions_judge(embedder=world.dependencies.embedder, now=now)
    return SessionOutcome.objects.get(session__in=session)


def kinds(found: SessionOutcome) -> list[str]:
    return [each["kind"] for each in found.evidence]


def of_cloud(payload: dict[str, Any], button: dict[str, str]) -> dict[str, Any]:
    value = payload["entry"][0]["changes"][0]["value"]
    value["contacts"][0]["wa_id"] = "15550100123"
    value["messages"] = [
        {
            "from": "15550100123",
            "id": "wamid.TAP",
            "timestamp": str(int(timezone.now().timestamp())),
            "type": "interactive",
            "interactive": {"type": "button_reply", "button_reply": button},
        }
    ]
    return payload


def test_a_tap_decides_and_is_not_answered(
    client: Client,
    admin_client: Client,
    world: World,
    settings: Any,
    cloud_text: dict[str, Any],  # noqa: F811
) -> None:
    settings.ENABLE_MEMORY_SYSTEM, settings.SURVEY_DAYS = True, 7
    world.say(CLIENT, OPEN)
    with GraphServer(access_token="secret-token") as graph:
        cloud = CloudProvider(
            api_url=f"{graph.url}/v24.0",
            phone_number_id=graph.phone_number_id,
            access_token="secret-token",
        )
        world.use(providers={**world.dependencies.providers, "cloud": cloud})
        assert ask(world) == 1
        sent = graph.sent[-1]["interactive"]
    assert (sent["type"], sent["body"]["text"]) == ("button", ASKS)
    yes, no = (button["reply"] for button in sent["action"]["buttons"])
    assert (yes["title"], no["title"]) == ("Yes", "No")
    assert ask(world, minutes=1) == 0, "once"
    assert kinds(outcome(world)) == ["silence"], "nobody has answered yet"
    turns = Turn.objects.count()
    # The session has ended and was judged meanwhile.
    assert post_cloud(client, of_cloud(cloud_text, no)).status_code == 200
    assert Turn.objects.count() == turns, "it wants no answer"
    assert Message.objects.filter(content="No").count() == 1
    found = outcome(world)
    assert (found.in_force, kinds(found)) == ("not_helped", ["silence", "said_no"])
    shown = words_of(page(admin_client, PAGE))
    assert "said, when asked, that it didn't help: No" in shown
    message = Message.objects.get(content="No")
    world.forget("message", message.pk)
    assert "said_no" not in kinds(outcome(world))


@pytest.mark.parametrize(("typed", "kind"), [("1", "said_yes"), (" 2. ", "said_no")])
def test_without_buttons_a_number_is_typed(
    client: Client,
    world: World,
    settings: Any,
    green_text: dict[str, Any],  # noqa: F811
    typed: str,
    kind: str,
) -> None:
    settings.ENABLE_MEMORY_SYSTEM, settings.SURVEY_DAYS = True, 7

    def write(text: str, number: str) -> None:
        green_text["idMessage"], green_text["timestamp"] = number, int(timezone.now().timestamp())
        green_text["messageData"]["extendedTextMessageData"] = {"text": text}
        assert post_green(client, green_text).status_code == 200

    write(OPEN, "A")
    world.work()
    assert ask(world) == 1
    sent = world.dependencies.providers["green"].sent  # type: ignore[attr-defined]
    assert sent[-1].text == f"{ASKS}\n\n1. Yes\n2. No"
    write(typed, "B")
    assert Turn.objects.filter(by_hand=False).count() == 1
    assert kind in kinds(outcome(world))
    write(typed, "C")
    assert Turn.objects.filter(by_hand=False).count() == 2, "a second one is a message"
    write("Did that help, that you are open on Friday?", "D")
    world.work()
    recalled = {entry["id"] for entry in TurnReplay.objects.latest("turn_id").recalled}
    of_survey = Message.objects.filter(metadata__has_key="survey").values_list("pk", flat=True)
    assert recalled, "what was remembered"
    assert not {str(key) for key in of_survey} & recalled


SAID: dict[str, tuple[list[str], list[str]]] = {
    "en": (
        ["yes", "Yes!", "yes it did", "it helped a lot"],
        ["no", "Nope, that's wrong", "not really"],
    ),
    "he": (["כן", "כן עזר מאוד", "עזר לי"], ["לא", "לא עזר"]),
    "de": (["ja", "Ja, hat sehr geholfen"], ["nein", "Nein, gar nicht geholfen"]),
    "es": (["si", "sí, mucho", "me ayudó"], ["no", "no me sirve"]),
    "ru": (["да", "Да, очень помогло"], ["нет", "нет, не помогло"]),
    "ar": (["نعم", "نعم ساعدني كثيرا"], ["لا"]),
    "hi": (["हाँ"], ["नहीं"]),
    "tr": (["evet", "evet, çok yardımcı oldu"], ["hayır"]),
}


@pytest.mark.parametrize("language", SAID)
def test_clear_words_count(world: World, language: str) -> None:
    world.say(CLIENT, OPEN)
    Chat.objects.update(language=language, fixed_language=language)
    assert ask(world) == 1
    asked = Turn.objects.get(context__has_key="survey")
    for texts, helped in zip(SAID[language], (True, False), strict=True):
        for text in texts:
            assert world.say(CLIENT, text) == [], text
            message = Message.objects.get(content=text)
            assert message.metadata["survey"] == [asked.context["survey"], helped], text
            message.delete()
            asked.save(update_fields=["context"])


@pytest.mark.parametrize(
    "text",
    [
        "Yes, and when do you open?",
        "yes but it was late",
        "No, thanks",
        "No I want a table for two",
        "yes book it",
        "yes no",
        "thanks!",
        "Is there parking?",
    ],
)
def test_other_words_are_a_message(world: World, text: str) -> None:
    world.say(CLIENT, OPEN)
    assert ask(world) == 1
    assert len(world.say(CLIENT, text)) == 1
    assert not {"said_yes", "said_no"} & {*kinds(outcome(world))}


def test_yes_later_on_is_no_answer_to_it(world: World) -> None:
    world.say(CLIENT, OPEN)
    assert ask(world) == 1
    world.say(CLIENT, "Is there parking?")
    assert len(world.say(CLIENT, "yes")) == 1


NOBODY: dict[str, Callable[[World, Chat], object]] = {
    "stopped": lambda _, chat: ChatAccess.objects.create(chat=chat, opted_out_at=timezone.now()),
    "no marketing": lambda _, chat: ChatAccess.objects.create(chat=chat, marketing_stopped=True),
    "blocked": lambda _, chat: ChatAccess.objects.create(chat=chat, standing="blocked"),
    "paused": lambda _, chat: ChatPause.objects.create(chat=chat),
    "group": lambda _, chat: Chat.objects.filter(pk=chat.pk).update(is_group=True),
    "terminal": lambda _, chat: Chat.objects.filter(pk=chat.pk).update(provider="console"),
    "thanks": lambda world, _chat: world.say(CLIENT, "thanks a lot"),
    "handed over": lambda world, _chat: world.say(CLIENT, "I want to talk to a human"),
    "dissent": lambda world, _chat: world.say(CLIENT, "That's wrong"),
}


@pytest.mark.parametrize("why", NOBODY)
def test_who_is_not_asked(world: World, why: str) -> None:
    world.say(CLIENT, OPEN)
    NOBODY[why](world, world.chat(CLIENT))
    assert ask(world) == 0


def test_the_owner_small_talk_and_busy_or_old_talks_are_left_alone(
    world: World, settings: Any
) -> None:
    settings.GODFATHER_PHONE = [GODFATHER]
    world.say(GODFATHER, OPEN)
    world.say(CLIENT, "Hello")
    assert ask(world) == 0
    world.say(CLIENT, OPEN)
    assert ask(world, minutes=20) == 0, "still talking"
    assert ask(world, hours=3) == 0, "too long ago"


def test_nobody_is_asked_again_within_some_days(world: World) -> None:
    world.say(CLIENT, OPEN)
    assert ask(world) == 1
    for days, asked in ((5, 0), (3, 1)):
        pass_time(days=days)
        ChatSession.objects.update(status="expired", expired_at=timezone.now())
        world.say(CLIENT, OPEN)
        assert ask(world) == asked


def test_a_tap_wakes_no_rule(world: World) -> None:
    since = timezone.now() - timedelta(days=1)
    world.say(CLIENT, OPEN)
    assert ask(world) == 1
    Rule.objects.create(name="Greet", when="message", text="Hi", since=since)
    Rule.objects.create(name="Late", when="silence", minutes=5, text="Soon", since=since)
    pass_time(hours=12)
    Turn.objects.filter(context__has_key="survey").update(created_at=timezone.now())
    world.receive(message_from(CLIENT, "yes"))
    assert chats_due(timezone.now()) == []
    Message.objects.filter(content="yes").update(
        received_at=F("received_at") - timedelta(minutes=6)
    )
    assert chats_due(timezone.now()) == []


def test_what_the_person_said_outweighs_all_else() -> None:
    assert verdict_of(["thanks", "said_no", "liked"]) == "not_helped"
    assert verdict_of(["handed_over", "said_yes", "disliked"]) == "helped"
    assert verdict_of(["said_no", "said_yes"]) == "helped"
