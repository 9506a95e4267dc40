"""The cards of a chat's earlier sessions in its prompts (CARDS_IN_PROMPT)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cards_app.models import MemoryCard
from cards_app.rules.card import extract_card
from cards_app.rules.card_yaml import render_card
from cards_app.rules.session_data import Line
from sessions_app.history.clear_session import sessions_expire
from sessions_app.models import ChatSession, Turn, TurnReplay
from tests.cards.making import make_due
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db

GARDEN = "We decided on the garden for the party."
WINE = "Please remember to bring the red wine."


@pytest.fixture
def world(world: World) -> World:
    """Nothing is recalled by itself: what the prompt knows of earlier sessions, cards tell."""
    world.with_answer_rules(cards_in_prompt=1, min_similarity=1.0)
    return world


def say_and_end(world: World, who: str, *texts: str) -> ChatSession:
    for text in texts:
        world.say(who, text)
    session = world.session(who)
    ChatSession.objects.filter(pk=session.pk).update(
        last_active=timezone.now() - timedelta(hours=30)
    )
    sessions_expire(now=timezone.now(), timeout=timedelta(hours=24))
    make_due()
    return session


def system_text(world: World) -> str:
    text: str = world.prompt()[0].content
    return text


def test_the_latest_earlier_session_is_told(world: World) -> None:
    say_and_end(world, CLIENT, WINE)
    session = say_and_end(world, CLIENT, GARDEN)
    world.say(CLIENT, "Hello again")
    told = system_text(world)
    day = session.created_at.date().isoformat()
    assert f"An earlier conversation, which began on {day}, in short:\nAbout: {GARDEN}" in told
    assert f"Decided: {GARDEN}" in told
    assert WINE not in told
    assert told.index("<memories-") < told.index(GARDEN) < told.index("</memories-")


def test_so_many_as_the_setting_says_in_their_order(world: World) -> None:
    world.with_answer_rules(cards_in_prompt=2)
    say_and_end(world, CLIENT, WINE)
    say_and_end(world, CLIENT, GARDEN)
    world.say(CLIENT, "Hello again")
    told = system_text(world)
    assert told.index(WINE) < told.index(GARDEN)


def test_by_default_there_are_none(world: World) -> None:
    world.with_answer_rules(cards_in_prompt=0)
    say_and_end(world, CLIENT, GARDEN)
    world.say(CLIENT, "Hello again")
    assert GARDEN not in system_text(world)


def test_nor_where_long_term_memory_is_off(world: World) -> None:
    world.with_answer_rules(longterm_enabled=False)
    say_and_end(world, CLIENT, GARDEN)
    world.say(CLIENT, "Hello again")
    assert GARDEN not in system_text(world)


def test_the_session_itself_is_not_told_to_itself(world: World) -> None:
    world.say(CLIENT, GARDEN)
    make_due()
    world.say(CLIENT, "and now?")
    assert "An earlier conversation" not in system_text(world)


@pytest.mark.parametrize("who", [OTHER_CLIENT, GODFATHER])
def test_no_other_chat_is_told(world: World, who: str) -> None:
    say_and_end(world, CLIENT, GARDEN)
    say_and_end(world, who, "Good morning")
    world.say(who, "What did they decide about the garden?")
    assert GARDEN not in system_text(world)


def test_the_replay_record_holds_it(world: World) -> None:
    session = say_and_end(world, CLIENT, GARDEN)
    world.say(CLIENT, "Hello again")
    (entry,) = Turn.objects.latest("id").replay.recalled
    assert entry["source"] == "cards"
    assert entry["session_id"] == str(session.pk)
    assert entry["content"].startswith(f"About: {GARDEN}")
    assert entry["in_prompt"] is True


def test_where_the_context_is_small_cards_go_first(world: World) -> None:
    say_and_end(world, CLIENT, GARDEN)
    world.say(CLIENT, "Hello again")
    tokens = sum(len(message.content) // 4 for message in world.prompt())
    world.with_answer_rules(max_context_tokens=tokens - 10)
    world.say(CLIENT, "Hi")
    assert GARDEN not in system_text(world)
    assert "Hello again" in [message.content for message in world.prompt()]
    (entry,) = Turn.objects.latest("id").replay.recalled
    assert entry["in_prompt"] is False


def test_forgetting_the_session_takes_its_card_out_of_replays(world: World) -> None:
    session = say_and_end(world, CLIENT, GARDEN)
    world.say(CLIENT, "Hello again")
    receipt = world.forget("session", session.pk)
    assert receipt.swept["cards_app_memorycard"] == 1
    assert not MemoryCard.objects.exists()
    assert _kept().count("garden") == 0


def test_forgetting_a_message_takes_even_the_keywords(world: World) -> None:
    session = say_and_end(world, CLIENT, "I like Umbrellas", WINE)
    world.say(CLIENT, "Hello again")
    assert "umbrellas" in _kept()
    message = session.messages.get(content="I like Umbrellas")
    world.forget("message", message.pk)
    assert "mbrellas" not in _kept()
    make_due()
    card = MemoryCard.objects.get(pk=session.pk)
    assert "mbrellas" not in str(vars(card))
    assert card.title == WINE


def _kept() -> str:
    return str(list(TurnReplay.objects.values("prompt", "recalled", "left_out")))


def told(*texts: str, longest: int = 1_000) -> str:
    return render_card(extract_card([Line("user", text) for text in texts]), longest=longest)


def test_a_card_is_told_in_the_language_of_its_title() -> None:
    assert told("החלטנו להזמין 12 כיסאות לחיפה.", "צריך לשלם מחר. איפה?") == (
        "נושא: החלטנו להזמין 12 כיסאות לחיפה.\n"
        "סוכם לאחרונה: החלטנו להזמין 12 כיסאות לחיפה.\n"
        "עדיין פתוח: איפה?\n"
        "התור של: העוזר\n"
        "לטיפול: צריך לשלם מחר. איפה?\n"
        "הוזכרו גם: חיפה\n"
        "נאמר: החלטנו, להזמין, כיסאות, לחיפה"
    )


def test_what_does_not_fit_is_left_out_line_by_line() -> None:
    texts = [f"We decided {letter * 30} and must go!" for letter in "abc"]
    for longest in range(80, 700, 7):
        text = told(*texts, longest=longest)
        assert len(text) <= longest
        assert all(line in told(*texts) for line in text.split("\n"))


def test_any_card_is_told_within_its_length() -> None:
    values: dict[str, Any] = {"longest": 80}
    assert len(told("x" * 500, **values)) <= 80
