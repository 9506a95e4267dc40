"""Texts judged beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.tables import table
from tests.unit.relevance.store import Store

PLUMBER = "Yossi the plumber: 052-555-0177, comes only in the mornings"


def scores(texts: Sequence[str], question: str) -> dict[str, float]:
    return {text: score for score, text in Store(texts).ask(question)}


def test_the_best_text_counts_less_beside_one_that_is_as_good() -> None:
    alone = scores([PLUMBER, "The lease ends in June"], "how much does the plumber take?")
    beside = scores(
        [PLUMBER, "Avi the plumber works for the landlord"], "how much does the plumber take?"
    )

    assert beside[PLUMBER] < alone[PLUMBER]


def test_of_texts_about_one_thing_that_with_the_kind_of_answer_is_first() -> None:
    price = "Quillon Print: 500 business cards cost $64"
    others = ["Quillon Print closes at four", "Quillon Print is next to the bank"]

    found = scores([*others, price], "how much does Quillon Print charge?")

    assert max(found, key=lambda text: found[text]) == price


def test_somebody_else_s_number_is_no_answer() -> None:
    number = "Dana's phone number is 050-555-0142"

    assert scores([number, PLUMBER], "what is Liora's phone number?")[number] < 0.7
    assert scores([number, PLUMBER], "what is Dana's phone number?")[number] >= 0.7


def test_a_question_for_a_name_alone_finds_all_about_it() -> None:
    about = ["TestCorp pays by the tenth", "TestCorp moved to Haifa", "Maya works at TestCorp"]

    found = scores([*about, "The lease ends in June"], "what do we know about TestCorp?")

    assert all(found[text] >= 0.7 for text in about)
    assert found["The lease ends in June"] < 0.7


def test_one_memory_alone_is_judged_like_one_of_many() -> None:
    """Nothing leads where nothing is asked for that it has."""
    assert scores([PLUMBER], "phone of the plumber")[PLUMBER] >= 0.7
    assert scores([PLUMBER], "when does the lease end?")[PLUMBER] < 0.7
    assert scores([PLUMBER], "who comes in the evening?")[PLUMBER] < 0.7


# Facts in other languages than English and Hebrew, found by questions in the same language.


FACTS = {
    "Soy alérgica a los cacahuetes": ["¿A qué soy alérgica?"],
    "La oficina está en la calle Mayor 14": ["¿Dónde está la oficina?", "la oficina"],
    "El pedido llega el viernes por la tarde": ["¿Cuándo llega el pedido?"],
    "Ich bin allergisch gegen Erdnüsse": ["Wogegen bin ich allergisch?"],
    "Das Büro ist in der Goethestraße 14": ["Wo ist das Büro?"],
    "Die Lieferung kommt am Freitag um 16 Uhr": ["Wann kommt die Lieferung?"],
    "Le bureau se trouve au 14 rue Victor-Hugo": ["Où est le bureau ?"],
    "Je travaille le mercredi matin": ["Quand est-ce que je travaille ?"],
    "Адрес офиса: улица Ленина, дом 14": ["Какой адрес офиса?"],
    "Доставка будет в пятницу в 16:00": ["Когда доставка?", "Когда будет доставка?"],
    "عنوان المكتب شارع الملك حسين 25": ["ما هو عنوان المكتب؟", "أين المكتب؟"],
    "رقم الطلب هو 4471": ["ما رقم الطلب؟"],
    "O escritório fica na rua Augusta 14": ["Onde fica o escritório?"],
    "L'ufficio è in via Roma 14": ["Dov'è l'ufficio?"],
    "办公室在中山路14号": ["办公室在哪里？"],
    "Адреса офісу: вулиця Франка 14": ["Яка адреса офісу?"],
}


@pytest.fixture(scope="module")
def store() -> Store:
    return Store(list(FACTS))


@pytest.mark.parametrize(
    ("question", "fact"), [(question, fact) for fact in FACTS for question in FACTS[fact]]
)
def test_a_question_recalls_its_fact_first(store: Store, question: str, fact: str) -> None:
    assert store.recalled(question)[:1] == [fact]


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("how old are my daughters?", ["My daughter Maya is 6", "My daughter Noa is 9"]),
        ("wie alt sind meine Töchter?", ["Meine Tochter Mia ist 6", "Meine Tochter Lea ist 9"]),
    ],
)
def test_of_two_facts_both_are_recalled(question: str, facts: list[str]) -> None:
    assert sorted(Store(facts).recalled(question)) == sorted(facts)


@table(
    ("question", "text"),
    [
        ("¿Dónde está la boda?", "La oficina está en la calle Mayor 14"),
        ("¿Tengo cita?", "Yo no tengo perro"),
        ("Où est la gare ?", "Ma fille est dans la cuisine"),
        ("Что у нас на обед?", "Адрес офиса: улица Ленина, дом 14. Он у нас один"),
        ("У вас есть кофе?", "У меня есть собака"),
        ("什么时候发货？", "我们什么时候开会都可以"),
    ],
)
def test_a_text_that_shares_only_grammar_is_not_recalled(question: str, text: str) -> None:
    assert Store([text, "ok thanks", "it was lovely"]).recalled(question) == []


@table("name", ["AI", "Uber", "Mia", "hay", "OS", "ton"])
def test_a_word_that_names_something_in_english_is_no_grammar(name: str) -> None:
    fact = f"{name} costs us 4,000 a year"

    assert Store([fact, "The invoice is late", "ok thanks"]).recalled(f"{name}: how much?") == [
        fact
    ]
