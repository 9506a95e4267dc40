"""Plain words in whole turns: what is stored, listed and forgotten, and what is answered."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from django.test import Client

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.base import OfflineChatModel
from sessions_app.conversations.phrases import text_for
from sessions_app.models import AssistantProfile, Chat, ForgetReceipt, Message, Turn
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, remember

GROUP = "120363000000000001@g.us"
# Language, what begins an order to remember, its fact, an order to forget it, and the question
# for all.
TOLD = [
    (
        "en",
        "remember that ",
        "my shoe size is 44",
        "forget my shoe size",
        "what do you know about me?",
    ),
    ("he", "תזכור ש", "מידת הנעליים שלי היא 44", "תשכח את מידת הנעליים שלי", "מה אתה יודע עליי?"),
    ("es", "recuerda que ", "mi talla es 44", "olvida mi talla", "¿qué sabes de mí?"),
    (
        "pt",
        "lembra que ",
        "o meu sapato é 44",
        "esquece o meu sapato",
        "o que você sabe sobre mim?",
    ),
    ("ru", "запомни, что ", "мой размер 44", "забудь мой размер", "что ты обо мне знаешь?"),
    ("ar", "تذكر أن ", "مقاس حذائي 44", "انسَ مقاس حذائي", "ماذا تعرف عني؟"),
    ("fr", "souviens-toi que ", "ma pointure est 44", "oublie ma pointure", "que sais-tu de moi ?"),
    (
        "de",
        "merk dir, dass ",
        "meine Schuhgröße 44 ist",
        "vergiss meine Schuhgröße",
        "was weißt du über mich?",
    ),
    ("it", "ricorda che ", "la mia scarpa è 44", "dimentica la mia scarpa", "cosa sai di me?"),
    ("uk", "запам'ятай, що ", "мій розмір 44", "забудь мій розмір", "що ти про мене знаєш?"),
    ("tr", "unutma ki ", "benim numaram 44", "unut ki benim numaram 44", "hakkımda ne biliyorsun?"),
    ("hi", "याद रखना कि ", "मेरा साइज़ 44 है", "भूल जाओ कि मेरा साइज़ 44 है", "मेरे बारे में क्या जानते हो?"),
    (
        "id",
        "ingat bahwa ",
        "ukuran saya 44",
        "lupakan ukuran saya",
        "apa yang kamu tahu tentang saya?",
    ),
]


def one(world: World, chat: str, text: str, **changes: Any) -> str:
    (reply,) = world.say(chat, text, **changes)
    return reply


@pytest.fixture
def offline(world: World) -> World:
    """A server without a language model."""
    world.dependencies = replace(world.dependencies, chat_model=OfflineChatModel())
    return world


def facts() -> list[str]:
    return list(Memory.objects.values_list("content", flat=True))


@pytest.mark.parametrize(
    ("language", "remember", "fact", "forget", "ask"), TOLD, ids=[each[0] for each in TOLD]
)
def test_remember_list_and_forget_in_each_language(
    world: World, language: str, remember: str, fact: str, forget: str, ask: str
) -> None:
    assert one(world, CLIENT, remember + fact) == text_for("remembered", language, content=fact)
    memory = Memory.objects.get()
    chat = world.chat(CLIENT)
    assert (memory.content, memory.visibility, memory.chat_id) == (fact, "chat", chat.pk)
    assert memory.source == "command"
    assert chat.language == language
    listed = one(world, CLIENT, ask)
    heading = text_for("memories", language, count="1", lines="")
    assert listed.startswith(heading)
    assert fact in listed
    done = one(world, CLIENT, forget)
    assert done == text_for("forgotten", language, id=memory.pk.hex[:8])
    assert facts() == []
    assert ForgetReceipt.objects.filter(kind="memory").count() == 1
    assert not Message.objects.filter(content__contains=fact).exists()
    # All of it was done without asking the model.
    assert world.dependencies.chat_model.requests == []  # type: ignore[attr-defined]


def test_the_owners_fact_is_the_owners(world: World) -> None:
    one(world, GODFATHER, "remember that the alarm code is 9921")
    assert Memory.objects.get().visibility == "owner"
    assert "9921" not in one(world, CLIENT, "what do you know about me?")


def test_the_message_is_a_command_and_no_knowledge(world: World) -> None:
    one(world, CLIENT, "remember that my locker is 17")
    assert Message.objects.get(role="user").metadata["command"] == "remember"


def test_several_that_match_are_asked_back(world: World) -> None:
    world.remember(CLIENT, "my shoe size is 44")
    world.remember(CLIENT, "my old shoe size was 43")
    asked = one(world, CLIENT, "forget my shoe size")
    assert "Which of these" in asked
    assert len(facts()) == 2
    assert "Forgotten" in one(world, CLIENT, "forget number 2")
    assert len(facts()) == 1


def test_a_memory_that_says_much_more_is_asked_back(world: World) -> None:
    world.remember(CLIENT, "Dana, my sister, pays every invoice in March with a cheque from Haifa")
    asked = one(world, CLIENT, "forget my sister")
    assert asked.startswith("Is this what I should forget?")
    assert len(facts()) == 1
    assert "Forgotten" in one(world, CLIENT, "forget 1")
    assert facts() == []


def test_the_command_with_its_slash_forgets_as_before(world: World) -> None:
    world.remember(CLIENT, "Dana, my sister, pays every invoice in March with a cheque from Haifa")
    assert "Forgotten" in one(world, CLIENT, "/forget my sister")


def test_nobody_forgets_what_is_not_theirs(world: World) -> None:
    world.remember(OTHER_CLIENT, "my shoe size is 44")
    world.remember(GODFATHER, "my shoe size is 45")
    reply = one(world, CLIENT, "forget my shoe size")
    assert reply == text_for("forget_none", "en")
    assert len(facts()) == 2


def test_the_owner_is_asked_about_a_clients_memory(world: World) -> None:
    world.remember(CLIENT, "my shoe size is 44")
    assert "another chat" in one(world, GODFATHER, "forget my shoe size")
    assert len(facts()) == 1


def test_in_a_group_only_what_is_said_to_the_assistant(world: World) -> None:
    assert world.say(CLIENT, "remember that we meet at 5", group_id=GROUP) == []
    assert facts() == []
    message = Message.objects.get(role="user")
    assert "command" not in message.metadata
    said = one(world, CLIENT, "@bot remember that we meet at 5", group_id=GROUP, mentions_us=True)
    assert said.startswith("✅")
    assert facts() == ["we meet at 5"]


def test_memory_that_is_off_stores_nothing(world: World) -> None:
    world.with_rules(memory_enabled=False)
    reply = one(world, CLIENT, "remember that my locker is 17")
    assert reply == text_for("memory_disabled", "en")
    assert facts() == []


def test_what_is_no_command_goes_to_the_model(world: World) -> None:
    for text in ("do you remember that I ordered?", "don't forget to call me", "forget it", "hi"):
        world.say(CLIENT, text)
    assert len(world.dependencies.chat_model.requests) == 4  # type: ignore[attr-defined]
    assert facts() == []


@pytest.mark.parametrize(
    ("language", "hello", "thanks", "asks_help"),
    [
        ("en", "hi", "thanks!", "what can you do?"),
        ("he", "שלום", "תודה רבה", "עזרה"),
        ("es", "hola buenas", "gracias", "¿qué puedes hacer?"),
        ("pt", "bom dia", "obrigada", "o que você sabe fazer?"),
        ("ru", "привет", "спасибо большое", "что ты умеешь?"),
        ("ar", "مرحبا", "شكرا جزيلا", "مساعدة"),
        ("fr", "bonjour", "merci", "que peux-tu faire ?"),
        ("de", "guten Tag", "danke!", "was kannst du?"),
        ("it", "ciao", "grazie mille", "cosa puoi fare?"),
        ("uk", "привіт", "дякую", "що ти вмієш?"),
        ("tr", "merhaba", "çok teşekkürler", "ne yapabilirsin?"),
        ("hi", "नमस्ते", "धन्यवाद", "आप क्या कर सकते हो?"),
        ("id", "selamat pagi", "terima kasih", "kamu bisa apa?"),
    ],
)
def test_small_talk_is_answered_without_a_model(
    offline: World, language: str, hello: str, thanks: str, asks_help: str
) -> None:
    AssistantProfile.objects.update_or_create(
        pk=1, defaults={"name": "Robin", "business_name": "Bread & Co"}
    )
    greeting = text_for("greeting", language, assistant="Robin (Bread & Co)")
    assert one(offline, CLIENT, hello) == greeting
    assert one(offline, CLIENT, thanks) == text_for("welcome", language)
    assert one(offline, CLIENT, asks_help) == text_for("help", language)
    assert one(offline, CLIENT, "👍") == "👍"


NEAR = [
    ("en", "The locker of the tall courier is number 17", "which one is the courier's?"),
    ("he", "הלוקר של השליח הגבוה הוא מספר 17", "מה של השליח?"),
    ("es", "El casillero del mensajero alto es el 17", "¿cuál es el del mensajero?"),
    ("pt", "O armário do carteiro alto é o 17", "qual é o do carteiro?"),
    ("ru", "Шкафчик высокого курьера номер 17", "какой у курьера?"),
    ("ar", "خزانة الساعي الطويل رقم 17", "ما هي خزانة الساعي القصير؟"),
    ("fr", "Le casier du grand coursier est le 17", "quel est celui du coursier ?"),
    ("de", "Der Spind vom großen Kurier ist die 17", "welcher ist der vom Kurier?"),
    ("it", "L'armadietto del corriere alto è il 17", "qual è quello del corriere?"),
    ("uk", "Шафка високого кур'єра номер 17", "яка у кур'єра?"),
    ("tr", "Uzun boylu kuryenin dolabı 17 numara", "kuryenin dolabı hangisi?"),
    ("hi", "लंबे कूरियर का लॉकर नंबर 17 है", "कूरियर का लॉकर कौनसा है?"),
    ("id", "Loker kurir yang tinggi nomor 17", "yang mana loker kurir?"),
]


@pytest.mark.parametrize(("language", "fact", "question"), NEAR, ids=[each[0] for each in NEAR])
def test_the_nearest_is_offered(offline: World, language: str, fact: str, question: str) -> None:
    offline.remember(CLIENT, fact)
    # Whatever a score is, it is below this threshold.
    rules = replace(offline.dependencies.rules, min_similarity=1.1)
    offline.dependencies = replace(offline.dependencies, rules=rules)
    reply = one(offline, CLIENT, question)
    assert reply == f"{text_for('nearest', language)}\n• {fact}"
    turn = Turn.objects.latest("id")
    (given,) = turn.replay.recalled
    assert (given["source"], given["nearest"], given["in_prompt"]) == ("memory", True, True)
    assert turn.outcome == "from_memory"
    # It is known who was shown it, so that an erasure finds it.
    assert "🗑️" in one(offline, CLIENT, f"/forget {fact}")
    assert not Message.objects.filter(content__contains=fact).exists()
    assert fact not in str(Turn.objects.get(pk=turn.pk).replay.recalled)


def test_nothing_is_offered_to_who_asks_nothing(offline: World) -> None:
    offline.remember(CLIENT, "The locker of the tall courier is number 17")
    rules = replace(offline.dependencies.rules, min_similarity=1.1)
    offline.dependencies = replace(offline.dependencies, rules=rules)
    assert "17" not in one(offline, CLIENT, "the courier was late today")


def test_nobody_is_offered_what_they_may_not_see(offline: World) -> None:
    offline.remember(GODFATHER, "The locker of the tall courier is number 17")
    rules = replace(offline.dependencies.rules, min_similarity=1.1)
    offline.dependencies = replace(offline.dependencies, rules=rules)
    assert "17" not in one(offline, CLIENT, "which locker is the courier's?")
    assert "17" in one(offline, GODFATHER, "which locker is the courier's?")


def test_with_a_model_nothing_below_the_threshold_is_offered(world: World) -> None:
    world.remember(CLIENT, "The locker of the tall courier is number 17")
    rules = replace(world.dependencies.rules, min_similarity=1.1)
    world.dependencies = replace(world.dependencies, rules=rules)
    world.say(CLIENT, "which locker is the courier's?")
    assert Turn.objects.latest("id").replay.recalled == []


@pytest.mark.parametrize(
    ("language", "remember", "question"),
    [
        ("en", "remember that my shoe size is 42", "what is my shoe size?"),
        ("he", "תזכור שמידת הנעליים שלי היא 42", "מה מידת הנעליים שלי?"),
        ("es", "recuerda que mi talla de zapatos es la 42", "¿cuál es mi talla de zapatos?"),
        ("de", "merk dir, dass meine Schuhgröße 42 ist", "wie ist meine Schuhgröße?"),
        ("ru", "запомни, что мой размер обуви 42", "какой у меня размер обуви?"),
    ],
)
def test_in_the_persons_words(offline: World, language: str, remember: str, question: str) -> None:
    one(offline, CLIENT, remember)
    heading, line = one(offline, CLIENT, question).splitlines()
    assert heading == text_for("recital", language)
    assert "42" in line
    assert one(offline, OTHER_CLIENT, question) == text_for("recital_none", language)


@pytest.mark.parametrize(
    ("text", "name", "language"),
    [
        ("/recordar mi talla es 44", "remembered", "es"),
        ("/HATIRLA numaram 44", "remembered", "tr"),
        ("/lembrar o meu sapato é 44", "remembered", "pt"),
        ("/זכור המידה 44", "remembered", "he"),
        ("/запам'ятай розмір 44", "remembered", "uk"),
        ("/запамʼятай: розмір 44", "remembered", "uk"),
        ("/सहायता", "help", "hi"),
        ("/Hilfe?", "help", "de"),
        ("/AYUDA", "help", "es"),
        ("/yardim", "help", "tr"),
        ("/مساعدة", "help", "ar"),
        ("/Hilfe", "help", "de"),
        ("/bantuan", "help", "id"),
        ("/aide", "help", "fr"),
        ("/aiuto", "help", "it"),
        ("/souvenirs", "memories_none", "fr"),
        ("/очистить", "", ""),
        ("/reset?", "", ""),
    ],
)
def test_commands_have_words_in_each_language(
    world: World, text: str, name: str, language: str
) -> None:
    reply = one(world, CLIENT, text)
    if not name:
        assert len(world.dependencies.chat_model.requests) == 1  # type: ignore[attr-defined]
        return
    fact = text.partition(" ")[2]
    assert reply == text_for(name, language, **({"content": fact} if fact else {}))
    assert world.chat(CLIENT).language == language


def test_a_copied_command_works_with_its_marks_of_direction(world: World) -> None:
    assert one(world, CLIENT, "\u200f\u200e/remember הלוקר שלי 17").startswith("✅")
    assert facts() == ["הלוקר שלי 17"]


def test_the_language_follows_the_person_and_not_single_words(world: World) -> None:
    said = [
        ("what time do you open tomorrow?", "en"),
        ("hola", "en"),
        ("ok 👍", "en"),
        ("cuánto cuesta el envío?", "es"),
        ("thanks", "es"),
        ("4471", "es"),
    ]
    for text, language in said:
        world.say(CLIENT, text)
        assert world.chat(CLIENT).language == language, text


def test_two_short_messages_change_the_language(world: World) -> None:
    world.say(CLIENT, "hello, how are you today?")
    world.say(CLIENT, "Termin bitte")
    assert world.chat(CLIENT).language == "en"
    world.say(CLIENT, "am Dienstag um 3")
    assert world.chat(CLIENT).language == "de"


def test_the_language_that_staff_have_fixed_stays_and_is_told_to_the_model(
    world: World, admin_client: Client
) -> None:
    world.say(CLIENT, "what time do you open tomorrow?")
    chat = world.chat(CLIENT)
    page = f"/admin/contacts/{chat.pk}/edit/"
    shown = admin_client.get(page).content.decode()
    seen = re.search(r'name="seen" value="([^"]*)"', shown)
    assert seen is not None
    form = {"seen": unescape(seen[1]), "staff_name": "", "fixed_language": "fr"}
    assert admin_client.post(page, {**form, "fixed_language": "xx"}).status_code == 200
    assert admin_client.post(page, form).status_code == 302
    assert "chosen by staff" in admin_client.get(f"/admin/contacts/{chat.pk}/").content.decode()
    assert one(world, CLIENT, "/forget nothing of that") == text_for("forget_none", "fr")
    assert one(world, CLIENT, "remember that my locker is 17").startswith("✅ Retenu")
    world.say(CLIENT, "and on Sundays, when do you open?")
    assert world.chat(CLIENT).language == "fr"
    *_, request = world.dependencies.chat_model.requests  # type: ignore[attr-defined]
    assert "Answer in French, whatever" in request.messages[0].content


@pytest.mark.parametrize(
    ("argument", "fact"),
    [
        ("that I live in Haifa", "I live in Haifa"),
        ("dass ich Vegetarier bin", "ich Vegetarier bin"),
        ("que vivo en Lima", "vivo en Lima"),
        ("что я живу в Туле", "я живу в Туле"),
        ("שאני גר בחיפה", "אני גר בחיפה"),
        ("שהקוד הוא 4411", "הקוד הוא 4411"),
        ("that house", "that house"),
        ("שני ילדים באים מחר", "שני ילדים באים מחר"),
    ],
)
def test_that_is_no_part_of_a_fact(world: World, argument: str, fact: str) -> None:
    world.say(CLIENT, f"/remember {argument}")
    assert list(Memory.objects.values_list("content", flat=True)) == [fact]


@pytest.mark.parametrize(
    ("chat", "spoken", "language"),
    [("34600000001@c.us", "en", "es"), ("351910000001@c.us", "en", "pt"), (CLIENT, "es", "es")],
)
def test_a_first_message_in_few_words_is_in_a_language_of_the_country_or_the_business(
    world: World, chat: str, spoken: str, language: str
) -> None:
    AssistantProfile.objects.update_or_create(pk=1, defaults={"languages": spoken})
    (reply,) = world.say(chat, "/remember no como carne")
    assert reply == text_for("remembered", language, content="no como carne")


def test_russian_without_letters_of_its_own_is_no_ukrainian(world: World) -> None:
    (reply,) = world.say(CLIENT, "/remember я живу в Хайфе")
    assert reply == text_for("remembered", "ru", content="я живу в Хайфе")


@pytest.mark.parametrize(
    "text",
    ["cancel my order, remember that", "не забудьте, что у нас стол на 5", "תבטל את ההזמנה, תזכור"],
)
def test_a_request_is_stored_as_no_fact(world: World, text: str) -> None:
    world.say(CLIENT, text)
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("text", "language", "fact"),
    [
        ("please note: I only eat kosher", "en", "I only eat kosher"),
        ("please note: no nuts for me", "en", "no nuts for me"),
        ("note: table 5 only", "en", "table 5 only"),
        ("note: window seat for me, thanks", "en", "window seat for me"),
        ("note : pas de noix pour mon fils", "fr", "pas de noix pour mon fils"),
        ("note: je ne dors pas bien", "fr", "je ne dors pas bien"),
        ("anota: sou alérgico a nozes", "pt", "sou alérgico a nozes"),
        ("anota que soy alérgico a las nueces", "es", "soy alérgico a las nueces"),
        ("nota: il pesce non lo digerisco bene", "it", "il pesce non lo digerisco bene"),
        ("запиши: я не їм горіхи", "uk", "я не їм горіхи"),
    ],
)
def test_what_follows_a_word_of_several_languages_decides_and_is_kept_whole(
    world: World, text: str, language: str, fact: str
) -> None:
    (reply,) = world.say(CLIENT, text)
    assert reply == text_for("remembered", language, content=fact)


@pytest.mark.parametrize("text", ["note: cancel my order", "note: annulez ma commande"])
def test_what_is_no_fact_in_one_of_the_languages_is_none(world: World, text: str) -> None:
    world.say(CLIENT, text)
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("he", "hello, where are you located please?", "מה אתם יודעים עליי?"),
        ("he", "hello, where are you located please?", "מה אתה זוכר עליי?"),
        ("es", "hello, where are you located please?", "¿qué sabes de mí?"),
        ("ru", "hello, where are you located please?", "что вы обо мне знаете?"),
        ("fr", "hello, where are you located please?", "que savez-vous de moi ?"),
        ("en", "שלום, איפה אתם נמצאים בבקשה?", "what do you know about me?"),
    ],
)
def test_the_list_is_in_the_language_in_which_it_is_asked_for(
    world: World, language: str, before: str, text: str
) -> None:
    remember(world, "We have a ramp")
    world.say(CLIENT, before)
    heading = text_for("memories", language, count="1", lines="")
    assert one(world, CLIENT, text).startswith(heading)


@pytest.mark.parametrize(
    ("text", "language"),
    [("forget about Maya's allergy", "en"), ("vergiss die Allergie von Maya", "de")],
)
def test_what_is_to_be_forgotten_is_not_told(offline: World, text: str, language: str) -> None:
    offline.remember(CLIENT, "Maya has an allergy: Allergie, nuts")
    Chat.objects.update(language=language)
    assert one(offline, CLIENT, text) == text_for("forget_usage", language)
    assert "nuts" in one(offline, CLIENT, "what allergy has Maya?")


@pytest.mark.parametrize(
    "commands",
    [
        ("/forget hat", "/forget hat", "/search hat", "/forget die"),
        ("/search pan", "/forget pan", "/search sin"),
        ("/forget der", "/remember das Boot", "/forget das"),
        ("/search la casa", "/search casa", "/forget la casa"),
    ],
)
def test_words_of_a_command_are_no_change_of_language(
    offline: World, commands: tuple[str, ...]
) -> None:
    one(offline, CLIENT, "/remember my hat is a red one")
    one(offline, CLIENT, "what do you remember about my hat?")
    for text in commands:
        one(offline, CLIENT, text)
        assert offline.chat(CLIENT).language == "en"


def test_a_command_in_another_language_is_one(offline: World) -> None:
    one(offline, CLIENT, "what do you remember about my hat?")
    one(offline, CLIENT, "/remember ich habe am Montag einen Termin beim Arzt")
    assert offline.chat(CLIENT).language == "de"
