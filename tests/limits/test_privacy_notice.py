"""The text that stands before the first answer to each person."""

from __future__ import annotations

import pytest

from sessions_app.models import AssistantProfile, ChatAccess, Turn
from sessions_app.models.turns import TurnState
from tests.limits.conftest import Limiting, sent
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
ENGLISH, HEBREW = "You write with an assistant. Write stop to end this.", "כאן עונה עוזר דיגיטלי."


@pytest.fixture
def noticed(world: World) -> World:
    AssistantProfile.objects.update_or_create(
        pk=1, defaults={"privacy_notice_en": ENGLISH, "privacy_notice_he": HEBREW}
    )
    return world


def test_it_stands_before_the_first_answer_and_no_other(noticed: World) -> None:
    assert noticed.say(CLIENT, "Hi") == [f"{ENGLISH}\n\nanswer to: Hi"]
    assert noticed.say(CLIENT, "Again") == ["answer to: Again"]
    noticed.say(CLIENT, "/reset")
    assert noticed.say(CLIENT, "Later") == ["answer to: Later"]
    assert noticed.say(OTHER_CLIENT, "Hi")[0].startswith(ENGLISH)


def test_it_is_in_the_chats_language(noticed: World) -> None:
    assert noticed.say(CLIENT, "שלום") == [f"{HEBREW}\n\nanswer to: שלום"]
    AssistantProfile.objects.update(privacy_notice_he="")
    assert noticed.say(OTHER_CLIENT, "שלום") == [f"{ENGLISH}\n\nanswer to: שלום"]


def test_further_languages_follow_the_english_one(noticed: World) -> None:
    notices = f"{ENGLISH}\n\n[es]\nHola.\n\nAdiós.\n[ru]  \nПривет."
    AssistantProfile.objects.update(privacy_notice_en=notices)
    spanish, russian, french = "¿Cuándo abren mañana?", "Когда вы открываетесь?", "Bonjour !"
    assert noticed.say(CLIENT, spanish) == [f"Hola.\n\nAdiós.\n\nanswer to: {spanish}"]
    assert noticed.say(OTHER_CLIENT, russian) == [f"Привет.\n\nanswer to: {russian}"]
    assert noticed.say("15550100777@c.us", french) == [f"{ENGLISH}\n\nanswer to: {french}"]


def test_the_owner_gets_none(noticed: World) -> None:
    assert noticed.say(GODFATHER, "Hi") == ["answer to: Hi"]


def test_a_command_or_a_stop_as_the_first_message_brings_it(noticed: World) -> None:
    assert noticed.say(CLIENT, "/help")[0].startswith(ENGLISH)
    assert noticed.say(OTHER_CLIENT, "stop")[0].startswith(f"{ENGLISH}\n\nThe assistant is off")


def test_the_answers_of_a_burst_bring_it_once(noticed: World) -> None:
    noticed.receive(*(message_from(CLIENT, text) for text in ("one", "two", "three")))
    noticed.work()
    assert [text.startswith(ENGLISH) for text in sent(noticed)] == [True, False, False]


def test_a_turn_that_is_tried_again_brings_it_again(noticed: World) -> None:
    noticed.receive(message_from(CLIENT, "Hi"))
    # A worker took it up, and died.
    ChatAccess.objects.create(chat=noticed.chat(CLIENT), noticed_turn=Turn.objects.get().pk)
    noticed.work()
    assert sent(noticed) == [f"{ENGLISH}\n\nanswer to: Hi"]


def test_where_its_turn_ended_without_an_answer_the_next_brings_it(noticed: World) -> None:
    noticed.say(CLIENT, "Hi")
    Turn.objects.update(state=TurnState.CANCELLED)
    assert noticed.say(CLIENT, "Again")[0].startswith(ENGLISH)


def test_a_limits_text_as_the_first_answer_brings_it(noticed: World, limited: Limiting) -> None:
    limited(model_calls_per_day=1)
    noticed.say(CLIENT, "Hi")
    Turn.objects.update(state=TurnState.CANCELLED)
    (told,) = noticed.say(CLIENT, "Again")
    assert told.startswith(f"{ENGLISH}\n\nI can't answer any more today.")
