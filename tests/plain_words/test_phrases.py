"""What is a command in plain words: labelled messages of ten languages.

The rules were made with ``tuned.txt``; ``held_out.txt`` was composed after them.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions_app.conversations.chat_language import language_of
from sessions_app.conversations.phrases import TEXTS, languages
from sessions_app.conversations.plain_words import (
    NAMES,
    asks_in_words,
    asks_to_forget,
    denies,
    for_everyone,
    parse_command,
    plain_command,
    small_talk,
    wants_person,
)
from tests.tables import table

HALVES = ("tuned.txt", "held_out.txt")
# Nothing may be erased by a mistake; the others show what they did.
PRECISION = {"remember": 0.98, "forget": 1.0, "memories": 0.98}
RECALL = 0.9


def labelled(half: str) -> list[tuple[str, str]]:
    lines = (Path(__file__).parent / half).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return [(label, text) for label, text in pairs]


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", PRECISION)
def test_commands_are_told_from_all_else(half: str, name: str) -> None:
    counts: Counter[str] = Counter()
    for label, text in labelled(half):
        found = parse_command(text)
        is_found = found is not None and found.name == name
        counts["right"] += is_found and label == name
        counts["found"] += is_found
        counts["meant"] += label == name
    assert counts["right"] >= PRECISION[name] * counts["found"]
    assert counts["right"] >= RECALL * counts["meant"] > 0


def test_how_strangers_write_is_never_mistaken() -> None:
    """Freer words than the phrases foresee go to the model; none becomes another command."""
    found = [(label, parse_command(text)) for label, text in labelled("strangers.txt")]
    right = [command.name == label for label, command in found if command is not None]
    assert all(right)
    assert len(right) >= 0.5 * sum(label != "none" for label, _ in found)


def test_there_are_enough_of_both_kinds() -> None:
    counts = Counter(label != "none" for half in HALVES for label, _ in labelled(half))
    assert min(counts[True], counts[False]) >= 150


@pytest.mark.parametrize(
    ("name", "label", "recognise"),
    [("persons.txt", "person", wants_person), ("denials.txt", "denial", denies)],
)
def test_a_wish_for_a_person_and_a_denial_are_told_from_all_else(
    name: str, label: str, recognise: Callable[[str], bool]
) -> None:
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    assert {language for language, _, _ in rows} == set(languages())
    wrong = [text for _, kind, text in rows if kind != label and recognise(text)]
    meant = [(language, recognise(text)) for language, kind, text in rows if kind == label]
    assert wrong == []
    for language in languages():
        found = [is_found for code, is_found in meant if code == language]
        assert sum(found) >= 0.9 * len(found) > 0, language


@table(
    "text",
    [
        "Hello, thank you! Could you please put me through to a real person?",
        "this is Dana\nI want to talk to somebody",
        "AGENT!!!",
        "QUIERO HABLAR CON UNA PERSONA",
        "\u200fאני רוצה לדבר עם נציג",
        "je voudrais parler à quelqu’un",
        "YETKİLİ BİRİYLE GÖRÜŞMEK İSTİYORUM",
        "musteri temsilcisi",
        "lütfen beni temsilciye bağlayın",
        '"I want a person"',
        f"Hello. {'My cake came late, and it was the wrong one. ' * 30}I want to talk to a person",
    ],
)
def test_a_wish_is_recognised_as_people_write(text: str) -> None:
    assert wants_person(text)


@table(
    "text",
    [
        "delete all my data",
        "forget everything you know about me",
        "can you wipe all my information?",
        "תמחק הכל עליי",
        "מחק את כל המידע שלי",
        "borra todo lo que sabes de mí",
        "Supprimez toutes mes données",
        "Bitte löschen Sie alles über mich",
        "esquece tudo o que sabes sobre mim",
        "dimentica tutto quello che sai su di me",
        "удали всё что ты обо мне знаешь",
        "видаліть усі мої дані",
        "امسح كل ما تعرفه عني",
        "tüm verilerimi silin",
        "hapus semua data saya",
        "मेरा सारा डेटा डिलीट करो",
    ],
)
def test_who_wants_all_erased_needs_a_person(text: str) -> None:
    assert wants_person(text)
    assert parse_command(text) is None


@table(
    "text",
    [
        "did you forget everything I told you?",
        "how do I delete data from my phone?",
        "remove all the onions please",
        "please remove everything from my cart",
        "borra mi pedido",
        "olvida todo",
        "תמחק את ההזמנה",
        "Удалите мой заказ",
        "what happens to my data?",
    ],
)
def test_who_wants_something_else_gone_needs_none(text: str) -> None:
    assert not wants_person(text)


@table(
    ("text", "fact"),
    [
        ("olvida que mi perro se llama Toby", "mi perro se llama Toby"),
        ("esquece que a minha mãe se chama Ana", "a minha mãe se chama Ana"),
        ("dimentica che mio figlio si chiama Leo", "mio figlio si chiama Leo"),
    ],
)
def test_words_of_another_language_keep_nothing_from_being_forgotten(text: str, fact: str) -> None:
    command = parse_command(text)
    assert command is not None
    assert (command.name, command.argument) == ("forget", fact)


@table(
    "text",
    ["", "👍", "17", "x " * 2_000, "I don't want to talk to a person", "¿?", "the manager, he"],
)
def test_what_wishes_and_denies_nothing(text: str) -> None:
    assert not wants_person(text)
    assert not denies(text)


@table(
    ("text", "fact"),
    [
        ("remember that $500 is my budget", "$500 is my budget"),
        ("Remember: +972 54 123 is my phone", "+972 54 123 is my phone"),
        ("remember that my discount is 10%", "my discount is 10%"),
        ("remember that my locker is 17, thanks!", "my locker is 17"),
        ("remember that our menu is at https://x.io/?a=1", "our menu is at https://x.io/?a=1"),
        ("souviens-toi qu'il s'appelle Léo", "il s'appelle Léo"),
        ("\u200fתזכור ש-17 זה הלוקר שלי", "17 זה הלוקר שלי"),
        ("תזכור ש\u05c1אני צמחוני", "אני צמחוני"),
        ("تَذَكَّر أنّ خزانتي رقم ١٧", "خزانتي رقم ١٧"),
        ("памʼятай, що мого собаку звати Рекс", "мого собаку звати Рекс"),
        ("Oye, recuerda por favor que vivo en el 3º. Gracias", "vivo en el 3º"),
        # Why something is to be forgotten is no part of it.
        ("forget my shoe size, the rest is right", "my shoe size"),
        ("lösch meine alte Adresse, wohn da nimmer", "meine alte Adresse"),
        ("Kannst du bitte meine Adresse vergessen?", "meine Adresse"),
    ],
)
def test_the_fact_is_kept_as_it_was_written(text: str, fact: str) -> None:
    found = plain_command(text)
    assert found is not None
    assert found.argument == fact


@table(
    "text",
    [
        "",
        "remember",
        "remember that",
        "תזכור ש",
        "תזכור \ufb2aאני צמחוני",
        "/foo remember that my locker is 17",
        "remember that my locker is 17?",
        "remember that my locker is 17? thanks",
        "remember that I need a cake. I'll come at five",
        "remember that " + "x is y " * 300,
        "forget 1234",
    ],
)
def test_what_is_doubtful_is_no_command(text: str) -> None:
    assert plain_command(text) is None


@table(
    ("text", "kind", "language"),
    [
        ("hi", "greeting", "en"),
        ("hello!", "greeting", "en"),
        ("שלום", "greeting", "he"),
        ("hola buenas", "greeting", "es"),
        ("bom dia", "greeting", "pt"),
        ("привет", "greeting", "ru"),
        ("مرحبا", "greeting", "ar"),
        ("bonjour 👋", "greeting", "fr"),
        ("guten Morgen", "greeting", "de"),
        ("buongiorno", "greeting", "it"),
        ("доброго дня", "greeting", "uk"),
        ("hi Robin", "greeting", "en"),
        ("thanks!", "thanks", "en"),
        ("merci", "thanks", "fr"),
        ("danke!", "thanks", "de"),
        ("gut", "acks", "de"),
        ("हां", "acks", "hi"),
        ("assalamualaikum", "greeting", "id"),
        ("terimakasih", "thanks", "id"),
        ("здрастуйте", "greeting", "uk"),
        ("תודה רבה 🙏", "thanks", "he"),
        ("ok, gracias", "thanks", "es"),
        ("👍", "acks", "en"),
        ("👍🏽", "acks", "en"),
        ("help", "help", "en"),
        ("hi, what can you do?", "help", "en"),
        ("מה אתה יודע לעשות?", "help", "he"),
        ("ماذا تستطيع أن تفعل؟", "help", "ar"),
    ],
)
def test_small_talk(text: str, kind: str, language: str) -> None:
    assert small_talk(text, name="Robin") == (kind, language)


def test_signs_alone_ask_nothing() -> None:
    assert not any(map(asks_in_words, ("", "👍", "...")))


@table(
    "text",
    [
        "don't save this",
        "please don't worry about it",
        "אל תשמור את זה",
        "no te preocupes",
        "não salve isso",
        "n'enregistre pas ça",
        "speicher das bitte nicht",
        "non ti preoccupare",
        "не сохраняй это",
        "не хвилюйся",
        "لا تقلق",
        "merak etme",
        "चिंता मत करो",
        "jangan disimpan ya",
    ],
)
def test_to_worry_or_save_nothing_is_no_question(text: str) -> None:
    assert parse_command(text) is None
    assert (small_talk(text) or ("",))[0] == "acks"


@table(
    "text",
    [
        "don't save the last slot for me",
        "don't worry, what time do you open?",
        "any flowers I don't want?",
        "אל תשמור לי מקום",
        "no guardes mi mesa",
        "não quero açúcar",
        "nicht zu kurz schneiden",
        "acı olmasın",
    ],
)
def test_what_else_is_not_to_be_done_is_no_small_talk(text: str) -> None:
    assert small_talk(text) is None


@table(
    "text", ["hi, where is my order?", "help me find my locker", "17", "😂", "ok 17", "?", "Robin"]
)
def test_what_asks_or_tells_something_is_no_small_talk(text: str) -> None:
    assert small_talk(text, name="Robin") is None


@table(
    ("text", "language"),
    [
        ("Where is my locker", "en"),
        ("איפה הלוקר שלי", "he"),
        ("dónde está mi casillero", "es"),
        ("onde fica o meu armário", "pt"),
        ("где мой шкафчик", "ru"),
        ("أين خزانتي", "ar"),
        ("où est mon casier", "fr"),
        ("wo ist mein Spind", "de"),
        ("dov'è il mio armadietto", "it"),
        ("де моя шафка", "uk"),
    ],
)
def test_the_language_of_a_question(text: str, language: str) -> None:
    assert language_of(text) == language
    assert asks_in_words(text)


@table(
    ("text", "before", "language"),
    [
        ("17", "es", "es"),
        ("17 kg Toby", "es", "es"),
        ("Toby", "he", "he"),
        ("Toby", "", ""),
        ("question 5", "", ""),
        ("x", "", ""),
        ("¡muchas gracias!", "en", "en"),
        ("merci beaucoup", "de", "de"),
        ("👍", "", ""),
        ("https://example.com/abierto-ahora", "en", "en"),
        ("你好，请问几点开门", "en", "en"),
        ("Καλημέρα, τι ώρα ανοίγετε;", "", ""),
        ("سلام، نان بدون گلوتن دارید؟ فردا کی باز می‌کنید؟", "", ""),
        ("Dana Di Marco likes tea", "en", "en"),
        ("what is that?", "xx", "en"),
    ],
)
def test_words_that_tell_no_language_change_none(text: str, before: str, language: str) -> None:
    assert language_of(text, before) == language


def test_the_language_of_dialogues() -> None:
    """Each line of a dialogue has the chat's language after it."""
    lines = (Path(__file__).parent / "dialogues.txt").read_text(encoding="utf-8").splitlines()
    right: Counter[str] = Counter()
    all_lines: Counter[str] = Counter()
    before, earlier = "", ""
    for line in lines:
        if not line or line.startswith("#"):
            before, earlier = "", ""
            continue
        language, text = line.split("\t")
        before = language_of(text, before, earlier.__str__)
        earlier = text
        all_lines[language] += 1
        right[language] += before == language.strip("-")
    assert right.total() >= 0.95 * all_lines.total()
    assert all(right[each] >= 0.85 * all_lines[each] for each in languages())


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def slash_words(text: str) -> list[str]:
    return sorted(re.findall(rf"/(?:{'|'.join(NAMES)})\b", text))


@table("language", sorted(languages()))
def test_a_language_has_all_texts_with_the_placeholders_of_the_english_ones(language: str) -> None:
    data, english = languages()[language], languages()["en"]
    assert data["texts"].keys() == english["texts"].keys()
    for name, text in data["texts"].items():
        assert text.strip(), name
        assert placeholders(text) == placeholders(TEXTS[name]["en"]), name
        assert slash_words(text) == slash_words(TEXTS[name]["en"]), name
    named = re.findall(r"/(\S+?)(?=[ ,،\n]|$)", data["texts"]["help"])
    assert {found.name for word in named if (found := parse_command(f"/{word}"))} == set(NAMES)
    assert len(named) == len(NAMES) * (1 if language == "en" else 2)
    assert len(data["texts"]["choose"]) <= 20
    for thing in english["counted"]:
        assert all(text.strip() for text in data["counted"][thing]), thing
        assert placeholders(data["counted"][thing][1]) == {"count"}


def test_all_languages_are_there_and_none_has_anothers_texts() -> None:
    codes = {"ar", "de", "en", "es", "fr", "he", "hi", "id", "it", "pt", "ru", "tr", "uk"}
    assert set(languages()) == codes
    for name in ("greeting", "help", "apology", "recital", "recital_none", "handover", "limit_day"):
        assert len(set(TEXTS[name].values())) == len(codes), name


@pytest.mark.parametrize("language", ["he", "ar"])
def test_lines_that_begin_with_latin_letters_are_shown_from_right_to_left(language: str) -> None:
    """The first letter or mark of direction tells a line's direction, as WhatsApp shows it.

    A slash needs a mark too: without it, it stands behind its word.
    """
    for name, text in languages()[language]["texts"].items():
        assert not re.search(r"(?<!\u200e)/[a-z]", text), name
        for line in text.splitlines():
            first = re.search(r"[^\W\d_]|\u200f|\{", line)
            is_ours = any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in line)
            if first and is_ours:
                assert unicodedata.bidirectional(first[0]) in ("R", "AL"), name


# The fact stands first: "‖" is no part of the message.
TOLD_BEFORE = [
    "I'm allergic to sesame‖, remember that",
    "Hi! ‖I'm allergic to nuts‖. Please remember that",
    "we close at 5 on fridays‖ - don't forget that",
    "my dad's birthday is May 3rd‖; note it down please",
    "the code is 1234‖. remember it!",
    "אני אלרגית לשומשום‖, תזכרי את זה",
    "הגודל שלי הוא 42‖, תרשום לך",
    "soy celíaca‖, recuérdalo por favor",
    "sou vegetariana‖, lembre disso",
    "Ich bin Vegetarier‖. Merk dir das bitte",
    "je suis allergique au lait‖, retiens-le",
    "sono celiaco‖, non dimenticarlo",
    "أنا نباتي‖، تذكر ذلك",
    "у меня аллергия на мёд‖, запомни",
    "мене звати Олег‖, запам'ятай це",
    "glütensiz yiyorum‖, bunu unutma",
    "main shakahari hoon‖, yeh yaad rakhna",
    "saya alergi kacang‖, ingat itu ya",
    "I only take deliveries before noon‖, remember that",
    "my order is always two loaves‖, please remember that",
    "never call me at work‖, remember that",
    "אני תמיד מזמינה שתי חלות‖, תזכור את זה",
    "mi talla es la 40‖, recuérdalo",
    "у нас дети вегетарианцы‖, запомните",
    "chez nous on est cinq‖, retiens-le",
    "the call centre is closed on Sundays‖, remember that",
    "return flights cost 80‖, remember that",
    "entrega a domicilio cuesta 5‖, recuérdalo",
    "Buenos Aires es mi ciudad‖, recuérdalo",
    "troca de óleo custa 50‖, lembre disso",
    "livre de cuisine à 20 euros‖, retiens-le",
    "Chavez est mon comptable‖, retiens-le",
    "мои дети учатся в школе 5‖, запомни",
    "hermanos tengo dos‖, recuérdalo",
]


@table("marked", TOLD_BEFORE)
def test_the_command_may_stand_behind_its_fact(marked: str) -> None:
    command = parse_command(marked.replace("‖", ""))
    assert command is not None
    assert (command.name, command.argument) == ("remember", marked.split("‖")[-2])


@table(
    "text",
    [
        "can I have a pizza, remember that",
        "is it open on sunday, remember that",
        "forget it, remember that",
        "that's wrong, remember that",
        "I'd like to order 2 cakes for Friday, remember that",
        "מה השעה, תזכור את זה",
        "сколько стоит, запомни это",
        "was kostet das, merk dir das",
        "كم السعر، تذكر ذلك",
        "you said the price was 40, remember that",
        "you said the price was 40, remember that?",
        "bring the cake, don't forget",
        "the old price, I remember that",
        "forget it, please don't remember that",
        "ok, remember this",
        "He can't come and I remember that",
        "we close at 5, remember that my mother comes at 4?",
        "Was ist passiert, vergiss das nicht?",
    ],
)
def test_what_only_ends_like_a_command_is_none(text: str) -> None:
    assert parse_command(text) is None


@table(
    "text",
    [
        "remember for everyone: challah costs 18",
        "/remember public: challah costs 18",
        "זכור לכולם: חלה עולה 18",
        "recuerda para todos: el pan cuesta 18",
        "lembra para todos: o pão custa 18",
        "merk dir für alle: das Brot kostet 18",
        "note pour tous : le pain coûte 18",
        "ricorda per tutti: il pane costa 18",
        "تذكر للجميع: الخبز ب 18",
        "запомни для всех: хлеб стоит 18",
        "запам'ятай для всіх: хліб коштує 18",
        "untuk semua: roti harganya 18",
        "herkes için: ekmek 18 lira",
        "सबके लिए: रोटी 18 की है",
    ],
)
def test_a_fact_may_be_for_everyone(text: str) -> None:
    command = parse_command(text)
    told = for_everyone(command.argument if command else text)
    assert "18" in told
    assert "18" in text.partition(told)[1]
    assert len(told.split()) < len(text.split())


# Each was public once.
@table(
    "fact",
    [
        "for all clients that haven't paid: block them",
        "for everyone that works here: bonus in December",
        "for our customers that are on the blacklist: no credit",
        "for clients we pay more VAT",
        "for everyone that challah costs 18",
        "everyone: Dana and Yossi owe me money",
        "para todos los clientes que no pagan: enviar carta",
        "per tutti i clienti che non pagano: niente credito",
        "pour tous les clients que Dana a amenés: commission",
        "לכולם שלא שילמו: לחסום",
    ],
)
def test_what_is_about_some_is_for_nobody_else(fact: str) -> None:
    assert for_everyone(fact) == ""


@pytest.mark.parametrize(
    ("text", "expected", "language"),
    [
        ("/remember я живу в Хайфе", (), "ru"),
        ("я живу в Хайфі", (), "uk"),
        ("no como carne", ("es", "he"), "es"),
        ("no como carne", ("pt",), "pt"),
        ("I live in Haifa", ("he", "ru"), "en"),
        ("אני גר בחיפה", ("ru",), "he"),
        ("Dana", ("he",), ""),
        ("la caparra viene restituita se disdico?", ("he",), "it"),
        ("la ricevuta viene spedita a casa?", ("he",), "it"),
        ("se piove la gita viene annullata?", ("he",), "it"),
        ("¿se devuelve la fianza si cancelo?", ("he",), "es"),
        ("viene alguien a casa?", ("he",), "es"),
        ("me interesa una visita", ("he",), "es"),
    ],
)
def test_a_short_first_message_is_rather_in_a_language_that_is_expected(
    text: str, expected: tuple[str, ...], language: str
) -> None:
    assert language_of(text, expected=expected) == language


@pytest.mark.parametrize(
    "text",
    [
        "forget about Maya's allergy",
        "תשכחי מהכלב",
        "שכח את קוד הכניסה",
        "забудь про домофон",
        "vergiss die Hausnummer",
        "ya no recuerdes lo del marisco",
        "oublie le code",
        "dimentica il codice",
    ],
)
def test_what_is_to_be_forgotten_of_others_is_told_from_a_question(text: str) -> None:
    assert asks_to_forget(text)
    assert plain_command(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "forget the invoice",
        "don't forget the cake",
        "forget it",
        "did you forget about us?",
        "vergiss die Bestellung nicht",
        "תשכח מזה",
        "I forgot about the cake",
        "забудь",
    ],
)
def test_not_all_forgetting_is_asked_for(text: str) -> None:
    assert not asks_to_forget(text)


@pytest.mark.parametrize(
    "text",
    [
        "what data do you hold on me?",
        "which personal information do you keep about me?",
        "was wisst ihr über mich?",
        "was weisst du ueber mich",
        "Welche Daten habt ihr über mich gespeichert?",
        "ماذا تعرفون عني؟",
        "מה רשום לך עליי",
        "איזה מידע יש לכם עליי?",
        "מה אתם יודעים עליי?",
        "какие данные у вас есть обо мне?",
        "что вы обо мне знаете?",
        "¿qué saben de mí?",
        "¿qué datos tienen sobre mí?",
        "quelles données avez-vous sur moi ?",
        "cosa sapete di me?",
        "o que vocês sabem sobre mim?",
        "які дані у вас є про мене?",
    ],
)
def test_who_asks_what_is_known_gets_the_list(text: str) -> None:
    found = plain_command(text)
    assert found is not None
    assert found.name == "memories"


@pytest.mark.parametrize(
    "text",
    [
        "what do you know about the menu?",
        "which data do you keep about my order?",
        "was wisst ihr über Hunde?",
        "какие данные у вас есть о доставке?",
        "qué saben de mi pedido",
        "מה אתם יודעים על הכלב שלי?",
    ],
)
def test_what_is_known_of_other_things_is_a_question(text: str) -> None:
    assert plain_command(text) is None
