"""The owner who asks about a client by name is told what that client said in "I"."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Turn
from sessions_app.recall.facade import CLIENT_NAME, Hit, Viewer, recall
from sessions_app.recall.message_search import MAX_NAMED
from tests.world import CLIENT, GODFATHER, World, remember, write_as

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("default_embedder")]

CLIENTS = {
    "Marta Ruiz": ["my order is the lamp of glass", "I'm allergic to latex", "my girl is Lucia"],
    "Marta Soler": ["my order is the oak chair", "I'm coming on Tuesday"],
    "יוסי כהן": ["ההזמנה שלי היא ספה אדומה", "אני אלרגי לבוטנים"],
    "יוסי לוי": ["ההזמנה שלי היא שולחן כחול"],
    "Иван Петров": ["мой заказ — белый шкаф"],
    "Inés García": ["Mi médico es el doctor Ruiz", "mi pedido llega el martes"],
    "José Müller": ["Meine Bestellung ist der rote Teppich"],
    "Haifa Flowers": ["I like red roses", "we order on Mondays"],
    "Rose": ["my wine is the dry one"],
}
PUBLIC = [
    "We deliver flowers to Haifa on Sundays",
    "The lamp costs 80 shekels",
    "We sell rose wine for 40 shekels",
    "ההזמנות נשלחות תוך שבוע",
    "Доставка заказа стоит 300",
]


@pytest.fixture
def clients(world: World) -> World:
    write_as(world, GODFATHER, "Dana")
    for text in PUBLIC:
        remember(world, text)
    for number, (name, facts) in enumerate(CLIENTS.items()):
        add(world, f"1555020{number:04d}@c.us", name, *facts)
    return world


def add(world: World, address: str, name: str, *facts: str) -> None:
    write_as(world, address, name)
    for fact in facts:
        remember(world, fact, "chat", address)


def hits(world: World, question: str, viewer: Viewer | None = None, **options: Any) -> list[Hit]:
    found = recall(
        query=question,
        viewer=viewer or Viewer("godfather", world.chat(GODFATHER).pk),
        embedder=world.dependencies.embedder,
        **options,
    )
    return found.hits


@pytest.mark.parametrize(
    ("question", "name", "fact"),
    [
        ("what is Marta Ruiz's order?", "Marta Ruiz", "lamp of glass"),
        ("what did marta ruiz order", "Marta Ruiz", "lamp of glass"),
        ("is Marta Ruiz allergic to anything?", "Marta Ruiz", "latex"),
        ("when is Marta Soler coming?", "Marta Soler", "Tuesday"),
        ("what do we know about Marta Soler?", "Marta Soler", "oak chair"),
        ("What does Soler want?", "Marta Soler", "oak chair"),
        ("what is the order of Marta?", "Marta Soler", "oak chair"),
        ("what is the order of Marta?", "Marta Ruiz", "lamp of glass"),
        ("מה ההזמנה של יוסי כהן?", "יוסי כהן", "ספה"),
        ("למה יוסי כהן אלרגי?", "יוסי כהן", "בוטנים"),
        ("מה אנחנו יודעים על יוסי?", "יוסי לוי", "שולחן"),
        ("что заказал Иван Петров?", "Иван Петров", "шкаф"),
        ("какой заказ у Ивана Петрова?", "Иван Петров", "шкаф"),
        ("was hat Jose Müller bestellt?", "José Müller", "Teppich"),
        ("who is Ines Garcia's doctor?", "Inés García", "doctor Ruiz"),
    ],
)
def test_the_owner_is_told_what_the_client_said(
    clients: World, question: str, name: str, fact: str
) -> None:
    found = hits(clients, question)
    told = [hit.metadata.get(CLIENT_NAME) for hit in found if fact in hit.content]
    assert told == [name]
    # Whoever has only a part of the name comes after.
    first = str(found[0].metadata.get(CLIENT_NAME))
    assert first.split()[0] == name.split()[0]


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("do we deliver flowers to Haifa?", PUBLIC[0]),
        ("how much is the rose wine?", PUBLIC[2]),
        ("what does the lamp cost?", PUBLIC[1]),
    ],
)
def test_words_of_a_name_are_not_always_a_person(clients: World, question: str, fact: str) -> None:
    assert hits(clients, question)[0].content == fact


def test_a_whole_name_hides_no_fact_of_everyone(clients: World) -> None:
    found = hits(clients, "what does Haifa Flowers like, and do we deliver flowers to Haifa?")
    assert {"I like red roses", PUBLIC[0]} <= {hit.content for hit in found}


@pytest.mark.parametrize("question", ["what is Marta Ruiz's order?", "מה ההזמנה של יוסי כהן?"])
def test_nobody_else_is_told(clients: World, question: str) -> None:
    clients.say(CLIENT, "hello")
    chat = clients.chat(CLIENT)
    with CaptureQueriesContext(connection) as queries:
        assert not [
            hit
            for hit in hits(clients, question, Viewer("client", chat.pk))
            if hit.content not in PUBLIC
        ]
    assert "sessions_app_parts" not in str(queries.captured_queries)
    staff = hits(clients, question, Viewer("staff"))
    assert "order" in staff[0].content or "ההזמנה" in staff[0].content


def test_two_people_of_one_name_are_told_apart(clients: World) -> None:
    for number, fact in enumerate(["my order is a blue vase", "my order is a green vase"]):
        add(clients, f"1555030000{number}@c.us", "Dana Levi", fact)
    names = {hit.content: hit.metadata[CLIENT_NAME] for hit in hits(clients, "Dana Levi's order?")}
    assert names["my order is a blue vase"] == "Dana Levi +1 555-030-0000"
    assert names["my order is a green vase"] == "Dana Levi +1 555-030-0001"


def test_the_same_words_of_somebody_else_hide_nothing(clients: World) -> None:
    add(clients, "15550400000@c.us", "Old Friend", "I'm allergic to latex")
    found = hits(clients, "tell me everything about Marta Ruiz")
    told = [hit.metadata[CLIENT_NAME] for hit in found if "latex" in hit.content]
    assert told == ["Marta Ruiz"]


def test_a_name_costs_few_statements(clients: World) -> None:
    for number in range(MAX_NAMED + 2):
        add(clients, f"1555050000{number}@c.us", f"Noa {number}", f"my order is number {number}")

    def taken(question: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            hits(clients, question)
        return len(queries)

    usual = taken("where is it?")
    assert taken("what is Marta Ruiz's order?") <= usual + 3
    assert taken("what is the order of Noa?") <= usual + 2 + MAX_NAMED


def test_what_was_asked_before_leaves_room_for_the_facts(clients: World) -> None:
    asked = [
        "what is Marta Ruiz's order?",
        "what did Marta Ruiz order?",
        "Marta Ruiz ordered what?",
    ]
    asked += ["which order has Marta Ruiz?", "do you know the order of Marta Ruiz?"]
    for text in asked:
        clients.say(GODFATHER, text)
        clients.say(GODFATHER, "/reset")
    clients.say(GODFATHER, "tell me what Marta Ruiz ordered?")
    recalled = Turn.objects.latest("id").replay.recalled
    assert recalled[0]["content"] == CLIENTS["Marta Ruiz"][0]
    assert recalled[0][CLIENT_NAME] == "Marta Ruiz"
