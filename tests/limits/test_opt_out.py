"""People stop the assistant in their chat, and start it again."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from sessions_app.conversations.phrases import languages, text_for
from sessions_app.extraction.extract import Extractor, chat_learn
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.limits.intake import MAX_LENGTH, UsageLimits, folded, word_for
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat, ChatAccess, ExtractionWork, InboundDelivery, Message
from tests.limits.conftest import Limiting, audited, calls, ends, sent
from tests.sessions.desk import Desk
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

OFF = "The assistant is off for you"
DEFAULT = UsageLimits()


def test_a_lone_stop_stops_it_with_one_confirmation(world: World) -> None:
    world.say(CLIENT, "Hi")
    (confirmation,) = world.say(CLIENT, "Stop!")
    assert confirmation.startswith(OFF)
    assert confirmation.endswith("write: start")
    for text in ("Are you there?", "stop", "/remember I like tea", "/search tea"):
        assert world.say(CLIENT, text) == []
    assert calls(world) == 1
    access = ChatAccess.objects.get()
    assert access.opted_out_at is not None
    assert audited("chat.opt_out", "chat.opt_in") == ["chat.opt_out"]


def test_what_they_write_meanwhile_reaches_no_model_memory_or_search(world: World) -> None:
    world.say(CLIENT, "stop")
    world.say(CLIENT, "My secret is walnut")
    assert not Message.objects.filter(content__contains="walnut").exists()
    delivery = InboundDelivery.objects.latest("id")
    assert delivery.raw == {"text": "My secret is walnut"}
    assert delivery.outcome == "not answered: The person has stopped the assistant."
    (confirmation,) = world.say(CLIENT, "start")
    assert confirmation == "The assistant is on again. To turn it off, write: stop"
    assert "walnut" not in world.seen_by_model(CLIENT, "What is my secret?")
    assert audited("chat.opt_out", "chat.opt_in") == ["chat.opt_out", "chat.opt_in"]


def test_in_hebrew(world: World) -> None:
    (confirmation,) = world.say(CLIENT, "עצור.")
    assert confirmation.startswith("העוזר כבוי עבורך")
    assert confirmation.endswith("התחל")
    assert world.say(CLIENT, "שלום") == []
    (confirmation,) = world.say(CLIENT, "*התחל*")
    assert confirmation.startswith("העוזר פועל שוב")
    assert world.say(CLIENT, "שלום") == ["answer to: שלום"]


@pytest.mark.parametrize(
    "text",
    [
        "Stop sending me messages please",
        "unsubscribe me!",
        "תפסיקו לשלוח לי הודעות",
        "no más mensajes",
        "отпишите меня от рассылки",
        "arrêtez de m'envoyer des messages",
    ],
)
def test_in_other_words(world: World, text: str) -> None:
    assert len(world.say(CLIENT, text)) == 1
    assert world.say(CLIENT, "hello?") == []
    assert calls(world) == 0


@pytest.mark.parametrize(
    "text",
    [
        "Where does the bus stop?",
        "stop the delivery, please",
        "stop by tomorrow?",
        "please stop calling the driver",
        "don't send me the invoice",
        "don't stop",
        "הסר את ההזמנה",
        "start",
    ],
)
def test_a_sentence_with_such_a_word_is_a_normal_message(world: World, text: str) -> None:
    assert world.say(CLIENT, text) == [f"answer to: {text}"]
    assert not ChatAccess.objects.filter(opted_out_at__isnull=False).exists()


def test_what_is_stored_can_still_be_seen_taken_and_erased(world: World) -> None:
    world.remember(CLIENT, "I like tea")
    world.say(CLIENT, "stop")
    for command in ("/memories", "/export", "/help", "/forget tea"):
        assert world.say(CLIENT, command), command
    assert calls(world) == 0


def test_messages_that_wait_are_not_answered_after_stop(world: World) -> None:
    world.receive(message_from(CLIENT, "one"), message_from(CLIENT, "stop"))
    world.work()
    assert ends() == [("refused", "chat_opted_out"), ("sent", "")]
    assert [text[: len(OFF)] for text in sent(world)] == [OFF]


def test_nothing_more_is_learned_from_a_person_who_stopped_it(world: World) -> None:
    world.say(CLIENT, "I like tea")
    ExtractionWork.objects.create(turn=world.chat(CLIENT).turns.get())
    world.say(CLIENT, "stop")
    extractor = Extractor(
        chat_model=world.dependencies.chat_model, embedder=world.dependencies.embedder
    )
    assert chat_learn(chat_id=world.chat(CLIENT).pk, extractor=extractor) == 0
    assert calls(world) == 1
    work = ExtractionWork.objects.get()
    assert (work.due, work.outcome) == (False, "not learned from: the chat isn't answered")


def test_the_owner_and_groups_are_exempt(world: World) -> None:
    assert world.say(GODFATHER, "stop") == ["answer to: stop"]
    world.with_rules(group_policy="always")
    assert world.say(CLIENT, "stop", group_id="120363000000000001") == [
        "answer to: Test User: stop"
    ]
    assert not ChatAccess.objects.filter(opted_out_at__isnull=False).exists()


def test_paused_by_staff_the_person_can_still_stop_it(world: World, desk: Desk) -> None:
    world.say(CLIENT, "Hi")
    desk.pause()
    (confirmation,) = world.say(CLIENT, "stop")
    assert confirmation.startswith(OFF)


def test_with_memory_off_too(world: World) -> None:
    world.with_rules(memory_enabled=False)
    (confirmation,) = world.say(CLIENT, "stop")
    assert confirmation.startswith(OFF)
    assert world.say(CLIENT, "Hi") == []
    assert InboundDelivery.objects.filter(raw__isnull=False).count() == 0


def test_words_of_the_settings(limited: Limiting) -> None:
    world = limited(stop_words=["leave me alone"], start_words=["come back"])
    assert world.say(CLIENT, "stop") == ["answer to: stop"]
    (confirmation,) = world.say(CLIENT, "Leave me  alone!!")
    assert confirmation.endswith("write: come back")


@pytest.mark.parametrize(
    ("language", "stop", "start"),
    [
        ("es", "¡Darme de baja!", "EMPEZAR"),
        ("pt", "parar", "comecar"),
        ("fr", "Arrêter", "démarrer"),
        ("de", "Abmelden.", "starten"),
        ("it", "fermati", "inizia"),
        ("ru", "Стоп!", "начать"),
        ("uk", "відписатися", "почати"),
        ("ar", "توقّف", "ابدأ"),
        ("tr", "DUR", "basla"),
        ("hi", "बंद करो", "शुरू"),
        ("id", "berhenti", "mulai"),
    ],
)
def test_each_language_has_its_words(
    limited: Limiting, language: str, stop: str, start: str
) -> None:
    words = build_usage_limits()
    world = limited(stop_words=words.stop_words, start_words=words.start_words)
    world.say(CLIENT, "4471")
    Chat.objects.update(language=language)
    (confirmation,) = world.say(CLIENT, stop)
    own = languages()[language]
    assert confirmation == text_for("opted_out", language, word=own["start"][0])
    assert world.say(CLIENT, "4471") == []
    (confirmation,) = world.say(CLIENT, start)
    assert confirmation == text_for("opted_in", language, word=own["stop"][0])


OFFERS_STOPPED = [
    "Stop promotions",
    "Werbeaktionen stoppen",
    "إيقاف العروض الترويجية",
    "no more ads please 🙏",
    "Detener promociones",
    "Arrêter les promotions",
    "Keine Werbung mehr bitte",
    "Angebote stoppen",
    "não quero mais receber propaganda",
    "basta pubblicità",
    "Остановить рекламу",
    "Вимкнути рекламу",
    "إيقاف العروض",
    "הפסק קידומי מכירות",
    "די עם הפרסומות",
    "kampanyaları durdur",
    "stop promo",
    "ऑफर बंद करो",
]
NOT_STOPPED = [
    "plus de promo ?",
    "what offers do you have",
    "stop the offer on my table",
    "stop your offers and cancel my order",
]


def test_who_stops_offers_is_still_answered(world: World) -> None:
    for place, text in enumerate(OFFERS_STOPPED):
        client = f"1555010{place:04}@c.us"
        assert len(world.say(client, text)) == 1
        access = ChatAccess.objects.get(chat__whatsapp_chat=client)
        assert (access.marketing_stopped, access.opted_out_at) == (True, None), text
        assert world.say(client, "Are you there?") == ["answer to: Are you there?"]
        world.say(client, "start")
        assert not ChatAccess.objects.filter(marketing_stopped=True).exists()
    actions = ["chat.marketing_stop", "chat.marketing_resume"]
    assert audited(*actions, "chat.opt_out") == actions * len(OFFERS_STOPPED)


@pytest.mark.parametrize("text", ["STOP", "Unsubscribe", "Stop promotions"])
def test_the_button_of_a_template_stops_offers_alone(world: World, text: str) -> None:
    assert len(world.say(CLIENT, text, kind="button")) == 1
    access = ChatAccess.objects.get()
    assert (access.marketing_stopped, access.opted_out_at) == (True, None)


def test_who_speaks_of_offers_stops_nothing(world: World) -> None:
    for text in NOT_STOPPED:
        assert world.say(CLIENT, text) == [f"answer to: {text}"]
    assert not ChatAccess.objects.filter(marketing_stopped=True).exists()


def test_stop_and_start_again_and_again_are_bounded(limited: Limiting) -> None:
    world = limited(messages_per_hour=2)
    for _ in range(4):
        world.say(CLIENT, "stop")
        world.say(CLIENT, "start")
    # Four of the hour's commands are confirmed; the next tells of the limit, once.
    assert len(sent(world)) == 5


def test_whoever_stopped_it_in_one_chat_has_stopped_it_in_both(world: World) -> None:
    world.say(CLIENT, "Hi")
    world.say(OTHER_CLIENT, "stop")
    merged = chat_merge(world.chat(CLIENT), world.chat(OTHER_CLIENT))
    assert world.say(merged.whatsapp_chat, "Hi") == []


@given(
    before=st.text(" \t\n.!?*_~\"'()…\u200f\u200e🛑", max_size=10),
    word=st.sampled_from(DEFAULT.stop_words),
    after=st.text(" \t\n.!?*_~\"'()…\u200f\u200e🛑", max_size=10),
)
def test_marks_around_the_word_dont_matter(before: str, word: str, after: str) -> None:
    for text in (word, word.upper(), word.title()):
        assert folded(f"{before}{text}{after}") == word


@given(st.text(min_size=1).filter(folded))
def test_any_other_word_beside_it_makes_it_a_sentence(text: str) -> None:
    assert folded(f"stop {text}") not in DEFAULT.stop_words
    assert folded(f"{text} stop") not in DEFAULT.stop_words


def test_a_long_text_is_not_looked_at() -> None:
    assert folded("stop" + "." * MAX_LENGTH) == ""
    assert folded("." * 65_000) == ""


def test_the_confirmation_names_a_word_of_the_chats_language() -> None:
    assert word_for("he", DEFAULT.start_words) == "התחל"
    assert word_for("en", DEFAULT.start_words) == "start"
    assert word_for("he", ["start"]) == "start"
    assert word_for("en", []) == ""
