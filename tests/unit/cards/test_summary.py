"""The summary that needs no chat model: the sentences that tell most, whole, in their own words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given, settings, strategies as st

from cards_app.rules.extract import (
    Said,
    choose_entries,
    entries_dump,
    entries_load,
    find_entries,
    render_entries,
)
from cards_app.rules.session_data import Line, one_line
from tests.fuzz.damage import FACTOR
from tests.tables import table
from tests.unit.cards.texts import ANY_LINES, said

PARTY = [
    Line("user", "Hi there! I'd like to book the garden for a party of 40 on June 12."),
    Line("assistant", "Sure! The garden costs 3,500 ₪ for the evening. Do you need catering?"),
    Line("user", "We're going with the vegetarian menu. What about parking?"),
    Line("assistant", "There are 15 places behind the house."),
    Line("user", "ok thanks!"),
    Line("user", "I need to pay a deposit to Dana Levi by Sunday. Dana has the contract."),
    Line("assistant", "Great, noted."),
]


def extract(lines: Sequence[Line], longest: int = 2_000, every: int = 20) -> str:
    """Sum up portion by portion, as the worker does; what is kept goes through the database."""
    kept = "[]"
    numbered = [Said(place, line) for place, line in enumerate(lines, start=1)]
    for start in range(0, len(lines), every):
        before = entries_load(kept)
        assert before is not None
        found = [*before, *find_entries(numbered[start : start + every])]
        kept = entries_dump(choose_entries(found, longest=longest))
    return render_entries(entries_load(kept) or [])


def test_a_conversation_with_room_for_all_of_it() -> None:
    assert extract(PARTY) == (
        "Decided:\n"
        "- client: We're going with the vegetarian menu.\n"
        "To do:\n"
        "- client: I need to pay a deposit to Dana Levi by Sunday.\n"
        "Said:\n"
        "- client: I'd like to book the garden for a party of 40 on June 12.\n"
        "- assistant: The garden costs 3,500 ₪ for the evening.\n"
        "- assistant: There are 15 places behind the house.\n"
        "- client: Dana has the contract."
    )


def test_a_hebrew_conversation_has_a_hebrew_summary() -> None:
    lines = said("אני רוצה להזמין 12 כיסאות לאירוע בגבעתיים.", "החלטנו לקחת גם 3 שולחנות.")
    assert extract(lines) == (
        "הוחלט:\n- לקוח: החלטנו לקחת גם 3 שולחנות.\n"
        "נאמר:\n- לקוח: אני רוצה להזמין 12 כיסאות לאירוע בגבעתיים."
    )


@table(
    "text",
    [
        "", " \n\u00a0", "ok", "👍", "תודה!", "?", "did you see the pictures?", "Thanks Dana!",
        "Good morning Dana, how are you?", "ראית את התמונות?", "בוקר טוב, מה שלומך?",
        "¡Buenos días! ¿Viste las fotos?", "Bom dia, tudo bem com você?", "صباح الخير!",
        "هل رأيت الصور؟", "Доброе утро! Ты видел фотографии?", "спасибо большое",
    ],
)  # fmt: skip
def test_where_nothing_is_said_there_is_no_summary(text: str) -> None:
    assert extract(said(text, text)) == ""


FACTS = {
    "en": ["The gate code is 7431.", "My daughter's name is Maya.", "We arrive on 14 March."],
    "he": ["הקוד של השער הוא 7431", "לבת שלי קוראים מאיה", "רואת החשבון שלנו היא רות ברגמן"],
    "es": [
        "El código de la puerta es 7431.",
        "Mi hija se llama Maya.",
        "El mensajero es de Correos Express.",
    ],
    "pt": ["O código do portão é 7431.", "Minha filha se chama Maya.", "Chegamos em 14 de março."],
    "ar": ["رمز البوابة هو ٧٤٣١", "اسم ابنتي مايا", "سأرسل العقد يوم الثلاثاء"],
    "ru": ["Код ворот 7431.", "Мою дочь зовут Майя.", "Пришлю договор Анне во вторник."],
    "el": ["Ο κωδικός είναι 7431.", "Μένω στην οδό Ερμού.", "Ο λογιστής λέγεται Νίκος."],
}


@table(("language", "length"), [*((language, 130) for language in FACTS), ("he", 500)])
def test_facts_survive_long_talk(language: str, length: int) -> None:
    talk = [
        f"we talked about the {thing} and the {other} for a long while"
        for thing in ("river", "garden", "city", "music", "food", "season", "film")
        for other in ("coffee", "traffic", "children", "summer", "house", "neighbour", "dream")
    ]
    lines = said(*(talk[place % len(talk)] for place in range(length)))
    for place, fact in enumerate(FACTS[language]):
        lines[20 + place * 50] = Line("user", f"haha ok\n{fact}")
    summary = extract(lines, longest=1_000)
    assert [fact for fact in FACTS[language] if fact not in summary] == []


def test_templates_do_not_crowd_out_facts() -> None:
    lines = said(*(f"Row number {number} was checked today." for number in range(300)))
    lines[40] = Line("user", "Dana Levi pays 4,500 for it.")
    summary = extract(lines, longest=500)
    assert "Dana Levi pays 4,500 for it." in summary
    assert "Row number 299" in summary


def test_tasks_do_not_crowd_out_facts() -> None:
    tasks = [f"We should call {letter}{letter} in room 1{letter} today." for letter in "abcdefghij"]
    assert "4711" in extract(said("The code of the door is 4711.", *tasks), longest=300)


@table("longest", [90, 120, 250, 1_000])
def test_sentences_are_whole(longest: int) -> None:
    sentences = [f"My order number for the house of Dana is {n}{n}." for n in range(100, 160)]
    bullets = extract(said(*sentences), longest=longest).splitlines()[1:]
    assert {each.removeprefix("- client: ") for each in bullets} <= set(sentences)


def test_what_a_colon_or_a_question_announces_stays_with_it() -> None:
    lines = [
        Line("user", "My order number:\n\n44712"),
        Line("assistant", "Thanks! Which size do you need?"),
        Line("user", "42"),
    ]
    assert extract(lines) == (
        "Said:\n- client: My order number: 44712\n- client: (Which size do you need?) 42"
    )


def test_one_very_long_line_is_looked_through_to_its_end() -> None:
    text = "we talked about many things, " * 200 + "the code is 4711 and Dana has it, "
    assert "the code is 4711 and Dana has it" in extract(said(text + "and so on " * 200), 400)


def test_what_was_said_twice_stands_there_once() -> None:
    lines = said("We want a table.", "It costs 50 ₪.", "it costs 50 ₪!", "It costs 50 ₪.")
    assert extract(lines, every=2).lower().count("it costs 50") == 1


def test_numbers_and_names_are_not_redacted() -> None:
    lines = said("Dana's number is 050-1234567, dana@shop.example")
    assert "050-1234567, dana@shop.example" in extract(lines)


def test_roles_speak_by_their_names() -> None:
    lines = [Line("godfather", "TestCorp owes me 5,000 ₪."), Line("tool", "balance 4,000 ₪ left")]
    assert extract(lines).splitlines() == [
        "Said:",
        "- godfather: TestCorp owes me 5,000 ₪.",
        "- tool: balance 4,000 ₪ left",
    ]


@table("stored", ["", "About: a chapter", "{}", "[1]", '[{"text": "x"}]', "null"])
def test_a_chapter_of_an_older_version_has_no_sentences(stored: str) -> None:
    assert entries_load(stored) is None


@given(ANY_LINES, st.integers(min_value=80, max_value=1500))
@settings(max_examples=30 * FACTOR, deadline=None)
def test_it_fits_and_is_verbatim(lines: list[Line], longest: int) -> None:
    entries = find_entries([Said(place, line) for place, line in enumerate(lines)])
    chosen = choose_entries(entries, longest=longest)
    assert len(render_entries(chosen)) <= longest
    assert entries_load(json.dumps(json.loads(entries_dump(chosen)))) == chosen
    texts = {place: one_line(line.content) for place, line in enumerate(lines)}
    for entry in chosen:
        for part in entry.text.removeprefix("(").split(") "):
            assert any(part.strip("…? ") in texts[place] for place in entry.places)


TALK = [
    "The train was late again and I read half a book while I waited on the platform.",
    "It rained the whole morning, then the sky cleared and we walked along the river.",
    "We finally painted the living room and the colour came out darker than in the shop.",
    "הרכבת איחרה שוב וקראתי חצי ספר בזמן שחיכיתי על הרציף בתחנה.",
    "Llovió toda la mañana y luego paseamos junto al río durante horas.",
    "Поезд опять опоздал, и я прочитала полкниги, пока ждала на платформе.",
]


@table(
    "text",
    [
        "We are vegetarians.",
        "She uses a wheelchair.",
        "The last cake was too sweet.",
        "We've got two cats.",
        "אנחנו צמחונים.",
        "Soy alérgica al níquel.",
        "Não gosto de canela.",
        "Mon mari ne mange pas de porc.",
        "Ich vertrage keine Milch.",
        "Sono vegana.",
        "У сына астма.",
        "أنا نباتية.",
        "Fındığa alerjim var.",
    ],
)
def test_what_stays_true_of_a_person_is_kept_before_small_talk(text: str) -> None:
    lines = [Line("client", each) for each in (text, *TALK)]
    assert text in extract(lines, longest=120)
