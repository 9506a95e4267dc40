""" "Remember this" and "forget this" are about the message that is quoted."""

from __future__ import annotations

from typing import Any

import pytest

from memories_app.models import Memory
from sessions_app.models import OutboundPart
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db

CAR = "our car is a red Fiat Panda"
REMEMBER = [
    "please remember this",
    "Remember that!",
    "don't forget it",
    "ok, please remember this, thanks",
    "/remember this",
    "תזכור את זה",
    "אל תשכחי את זה בבקשה",
    "recuérdalo por favor",
    "anota esto",
    "merk dir das bitte",
    "vergiss das nicht",
    "souviens-toi de ça",
    "n'oublie pas ça",
    "ricordalo",
    "lembra disso",
    "запомни это",
    "не забудь это",
    "запам'ятай це",
    "bunu unutma",
    "इसे याद रखना",
    "ingat ini",
    "تذكر هذا",
]
FORGET = [
    "forget this",
    "please delete that",
    "Forget it.",
    "תשכח את זה",
    "תמחקי את זה בבקשה",
    "olvida eso",
    "olvídalo por favor",
    "vergiss das bitte",
    "oublie ça",
    "dimenticalo",
    "esquece isso",
    "забудь это",
    "забудь про це",
    "bunu unut",
    "इसे भूल जाओ",
    "lupakan ini",
    "انس هذا",
]
NEITHER = [
    "is this remembered?",
    "do you remember this?",
    "זוכר את זה?",
    "I remember this",
    "I forget this every time",
    "forget this place, let's go to the beach",
    "remember this weekend we're closed?",
    "never forget",
    "¿lo recuerdas?",
    "merkst du dir das?",
    "tu te souviens de ça?",
    "ты помнишь это?",
    "this",
    "thanks!",
    "bunu unuttum",
    "j'oublie ça",
    "olvidé eso",
]


def quote(world: World, text: str, quoted: str | None, **changes: Any) -> list[str]:
    return world.say(CLIENT, text, reply_to_id=quoted, **changes)


def wrote(world: World, text: str, chat: str = CLIENT, **changes: Any) -> str:
    event = message_from(chat, text, **changes)
    world.receive(event)
    world.work()
    return event.provider_message_id


@pytest.mark.parametrize("text", REMEMBER)
def test_their_own_message_is_remembered(world: World, text: str) -> None:
    quoted = wrote(world, CAR)
    (told,) = quote(world, text, quoted)
    assert told.startswith("✅")
    assert Memory.objects.get().content == CAR


@pytest.mark.parametrize("text", FORGET)
def test_what_the_message_told_is_forgotten(world: World, text: str) -> None:
    wrote(world, "/remember my dog is Rex")
    quoted = wrote(world, "/remember my yak is Al")
    quote(world, text, quoted)
    assert [memory.content for memory in Memory.objects.all()] == ["my dog is Rex"]


def test_what_was_remembered_by_a_quote_is_forgotten_by_one(world: World) -> None:
    quoted = wrote(world, CAR)
    quote(world, "please remember this", quoted)
    quote(world, "forget this", quoted)
    assert not Memory.objects.exists()


def test_our_confirmation_can_be_quoted(world: World) -> None:
    wrote(world, "/remember my yak is Al")
    part = OutboundPart.objects.get()
    quote(world, "forget this", part.provider_message_id)
    assert not Memory.objects.exists()


@pytest.mark.parametrize("text", NEITHER)
def test_other_words_do_neither(world: World, text: str) -> None:
    quoted = wrote(world, "/remember my yak is Al")
    quote(world, text, quoted)
    assert [memory.content for memory in Memory.objects.all()] == ["my yak is Al"]


def test_what_is_no_fact_of_theirs_is_not_remembered(world: World) -> None:
    """A question, what the assistant or somebody else wrote, what was forwarded, and nothing."""
    question = wrote(world, "When do you open?")
    answer = OutboundPart.objects.get().provider_message_id
    foreign = wrote(world, "my PIN is 9911", metadata={"forwarded": True})
    other = wrote(world, "my PIN is 1234", chat=OTHER_CLIENT)
    for quoted in (question, answer, foreign, other, None, "wamid.unknown"):
        quote(world, "please remember this", quoted)
        (usage,) = quote(world, "/remember this", quoted)
        assert "/remember" in usage
    assert not Memory.objects.exists()


def test_in_a_group_it_is_the_writers_own(world: World) -> None:
    group: dict[str, Any] = {"group_id": "120363000000000001", "mentions_us": True}
    theirs = wrote(world, "I'm allergic to nuts", chat=OTHER_CLIENT, **group)
    quote(world, "@DeniDin remember this", theirs, **group)
    assert not Memory.objects.exists()
    own = wrote(world, CAR, **group)
    quote(world, "@DeniDin remember this", own, **group)
    assert Memory.objects.get().content == CAR


def test_what_was_remembered_already_is_no_fact_again(world: World) -> None:
    quoted = wrote(world, "/remember my yak is Al")
    quote(world, "remember this", quoted)
    assert Memory.objects.get().content == "my yak is Al"
