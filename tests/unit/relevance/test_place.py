"""Where a business is, is asked in words that no address holds."""

from __future__ import annotations

import pytest

from memoryproject.foundation.retrieval.subqueries import asks_for_place
from tests.unit.relevance.store import Store

FOR_THE_PLACE = """
where are you? | hey where r u located | What's your address please? | how do I find you
how do i get there? | wheres the shop | Address? | what’s the address? | where is your clinic
איפה אתם? | היי, מה הכתובת שלכם? | איך מגיעים אליכם? | סליחה איפה הסטודיו? | באיזה רחוב אתם
¿Dónde están? | ¿dónde queda la tienda? | donde estais exactamente | cómo llego?
en qué calle estáis
Onde fica a loja? | oi, onde vcs ficam | qual o endereço? | como chego aí
vous êtes où ? | où êtes-vous situés | c'est où svp | quelle est l'adresse
comment venir chez vous
Wo seid ihr? | wo finde ich euch | wie komme ich zu euch? | Wie ist eure Adresse?
Dove siete? | come arrivo da voi | qual è l'indirizzo? | in che via siete
где вы находитесь? | как вас найти | какой у вас адрес | как до вас добраться
де ви знаходитесь | яка адреса | як до вас доїхати
وين محلكم؟ | أين تقعون؟ | فين العيادة | ممكن اللوكيشن | كيف أوصل لكم
"""
FOR_OTHER_THINGS = """
where are you going on holiday | where is my order? | where can I park? | where do I live?
where is Dana?
where are my keys | how do I get a refund? | what's your phone number
what's my address | where is it
how do I find my invoice | where do you get your flour
איפה אני גר? | איפה החניה? | איפה ההזמנה שלי | איך מגיעים לשדה התעופה
¿dónde está mi pedido? | dónde puedo aparcar | cómo llego a fin de mes | onde está meu pedido
où est ma commande | où puis-je me garer | c'est bon | wo ist der Schlüssel | wo kann ich parken
dove posso parcheggiare | где мой заказ | где поставить машину | де моє замовлення | وين طلبي
"""
FACTS = [
    (
        "הסטודיו ברחוב פלורנטין 22, קומה ב'",
        "החניה הכי קרובה היא בחניון השוק",
        "פתוחים א-ה 10:00-19:00",
    ),
    (
        "La escuela está en la calle Pelayo 14",
        "El aparcamiento de la plaza es gratis",
        "Abrimos a las 9",
    ),
    ("Our salon is at 5 Bridge Street", "Parking is free behind the church", "We open at nine"),
    ("Мы находимся на улице Мира, 7", "Стоянка бесплатная", "Открыты с 9 до 21"),
]


def each(lines: str) -> list[str]:
    return [text.strip() for text in lines.strip().replace("\n", " | ").split(" | ")]


@pytest.mark.parametrize("text", each(FOR_THE_PLACE))
def test_a_question_for_the_place_is_one_in_ten_languages(text: str) -> None:
    assert asks_for_place(text)


@pytest.mark.parametrize("text", each(FOR_OTHER_THINGS))
def test_a_question_for_something_elses_place_is_none(text: str) -> None:
    assert not asks_for_place(text)


@pytest.mark.parametrize("facts", FACTS, ids=["he", "es", "en", "ru"])
@pytest.mark.parametrize(
    "question", ["איפה אתם?", "what's your address?", "cómo llego?", "wo seid ihr"]
)
def test_it_finds_the_address_in_any_language(facts: tuple[str, ...], question: str) -> None:
    assert Store(facts).recalled(question)[:1] == [facts[0]]
