"""A line is found by who said it, when, and what was said around it, not by its words alone.

Where two lines say the same, nothing but that evidence tells one from the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from memoryproject.foundation.integrations.whatsapp.events import Party
from sessions_app.embedding.message_vectors import messages_embed
from sessions_app.recall.facade import MESSAGES, Hit, Viewer, recall
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.usefixtures("default_embedder")

GROUP_ID = "120363000000000001"
GROUP = f"{GROUP_ID}@g.us"
PHONES = {"Dana Levi": "15550100123", "Omer": "15550100456", "דנה": "15550100123"}
PHONES["עומר"] = PHONES["Omer"]

MAY = datetime(2024, 5, 12, 9, tzinfo=timezone.utc)
JULY = datetime(2024, 7, 3, 9, tzinfo=timezone.utc)


def said(world: World, name: str, at: datetime, *texts: str) -> None:
    """Somebody writes this in the group, a minute apart. Old messages are stored and not
    answered."""
    for number, text in enumerate(texts):
        event = message_from(
            CLIENT,
            text,
            party=Party(phone=PHONES[name], name=name),
            timestamp=at + timedelta(minutes=number),
            group_id=GROUP_ID,
        )
        world.receive(event)
    world.work()


def ask(world: World, question: str, chat: str = GROUP, bar: float = 0.0) -> list[Hit]:
    """What recall finds in what was said in the chat."""
    messages_embed(session_id=world.session(chat).pk, embedder=world.dependencies.embedder)
    return recall(
        query=question,
        viewer=Viewer(user_role="client", chat_id=world.chat(chat).pk),
        embedder=world.dependencies.embedder,
        top_k=20,
        min_similarity=bar,
        sources=[MESSAGES],
    ).hits


def first(hits: Sequence[Hit]) -> str:
    """The best hit; it must be better than the next one, so that no chance decides."""
    assert len(hits) > 1
    assert hits[0].score > hits[1].score + 0.01, [(hit.content, hit.score) for hit in hits]
    return hits[0].content


@pytest.fixture
def invoices(world: World) -> World:
    """Two people told of the same matter, in two months, in the same words."""
    said(world, "Dana Levi", MAY, "The invoices go to Liora")
    said(world, "Omer", MAY + timedelta(days=1), "The invoices go to Noa")
    said(world, "Dana Levi", JULY, "The invoices go to Rami")
    said(world, "Omer", JULY + timedelta(days=1), "The invoices go to Yael")
    return world


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What did Dana say about the invoices in May?", "The invoices go to Liora"),
        ("What did Omer say about the invoices in May?", "The invoices go to Noa"),
        ("What did Dana say about the invoices in July?", "The invoices go to Rami"),
        ("Where did Omer say the invoices go, in July 2024?", "The invoices go to Yael"),
    ],
)
def test_what_somebody_said_in_a_month(invoices: World, question: str, answer: str) -> None:
    assert first(ask(invoices, question)) == answer


def test_a_day_is_one_of_the_business(world: World, settings: Any) -> None:
    """After midnight there, it is still the day before in UTC."""
    settings.BUSINESS_TIME_ZONE = "Asia/Jerusalem"
    night = MAY.replace(day=12, hour=22, minute=30)
    said(world, "Dana Levi", night, "The invoices go to Liora")
    said(world, "Dana Levi", night + timedelta(days=1), "The invoices go to Noa")
    question = "What did Dana say about the invoices on 13 May 2024?"
    assert first(ask(world, question)) == "The invoices go to Liora"


def test_a_month_in_which_nothing_was_said_of_it_prefers_none(invoices: World) -> None:
    hits = ask(invoices, "What did Dana say about the invoices in January?")
    by_text = {hit.content: hit.score for hit in hits}
    assert by_text["The invoices go to Liora"] == pytest.approx(
        by_text["The invoices go to Rami"], abs=0.1
    )


@pytest.fixture
def hebrew(world: World) -> World:
    said(world, "דנה", MAY, "החשבוניות עוברות לליאורה")
    said(world, "עומר", MAY + timedelta(days=1), "החשבוניות עוברות לנועה")
    said(world, "דנה", JULY, "החשבוניות עוברות לרמי")
    said(world, "עומר", JULY + timedelta(days=1), "החשבוניות עוברות ליעל")
    return world


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("מה דנה אמרה על החשבוניות במאי?", "החשבוניות עוברות לליאורה"),
        ("מה עומר אמר על החשבוניות במאי?", "החשבוניות עוברות לנועה"),
        ("מה דנה אמרה על החשבוניות ביולי?", "החשבוניות עוברות לרמי"),
        ("לאן אמר עומר שהחשבוניות עוברות, ביולי 2024?", "החשבוניות עוברות ליעל"),
    ],
)
def test_in_hebrew_by_words_alone(hebrew: World, question: str, answer: str) -> None:
    """This embedder doesn't know Hebrew: no vector has a part in it."""
    hebrew.use(embedder=WordLlamaEmbedder())
    hits = ask(hebrew, question)
    assert {hit.similarity for hit in hits} == {None}
    assert first(hits) == answer


ANSWER = "It's a mix of drama and romance!"


def test_an_answer_is_found_by_the_question_before_it(world: World) -> None:
    """It shares no word with what is asked; the same words elsewhere answer something else."""
    said(world, "Dana Levi", MAY, "How was the weather in Haifa?", ANSWER)
    said(world, "Omer", JULY, "What is your theatre play about?", ANSWER)
    hits = ask(world, "What is the theatre play about?")
    days = [hit.created_at.month for hit in hits if hit.content == ANSWER]
    scores = [hit.score for hit in hits if hit.content == ANSWER]
    assert days == [7, 5]
    assert scores[0] > scores[1] + 0.05
    # A turn asks for the best only: there it comes with its question.
    (question,) = ask(world, "Who knows what his theatre play is about?", bar=0.7)
    assert question.metadata["after"]["content"] == ANSWER


def test_the_answer_that_follows_a_repeated_question_takes_its_place(world: World) -> None:
    """Imported messages don't say which of them they answer."""
    said(world, "Dana Levi", MAY, "How was the weather in Haifa?", ANSWER)
    said(world, "Omer", JULY, "What is your theatre play about?", ANSWER)
    (answer,) = ask(world, "What is the theatre play about?", bar=0.7)
    assert (answer.content, answer.created_at.month) == (ANSWER, JULY.month)
    assert answer.metadata["before"]["content"].endswith("What is your theatre play about?")


def test_a_line_without_a_vector_is_judged_by_its_words(world: World) -> None:
    """This embedder doesn't know Hebrew. A name stands in any language."""
    world.use(embedder=WordLlamaEmbedder())
    debt = "Zeta Ltd חייבים לנו 5,000 שקל"
    said(world, "Dana Levi", MAY, "The courier comes tomorrow morning", debt, "I sent the plans")
    hits = ask(world, "What about Zeta?", bar=0.7)
    assert [hit.content for hit in hits] == [debt]
    assert hits[0].similarity is None


def test_a_line_is_better_than_its_neighbours_before_it_has_a_vector(world: World) -> None:
    said(world, "Dana Levi", MAY, "We put the oak shelf near door 79", "The lamp is on the left")
    messages_embed(session_id=world.session(GROUP).pk, embedder=world.dependencies.embedder)
    newest = "We put the pudakapobo shelf near door 40"
    event = message_from(
        CLIENT,
        newest,
        party=Party(phone=PHONES["Dana Levi"], name="Dana Levi"),
        timestamp=MAY + timedelta(minutes=2),
        group_id=GROUP_ID,
    )
    world.receive(event)
    hits = recall(
        query="pudakapobo",
        viewer=Viewer(user_role="client", chat_id=world.chat(GROUP).pk),
        embedder=world.dependencies.embedder,
        min_similarity=0.0,
        sources=[MESSAGES],
    ).hits
    assert first(hits) == newest


@pytest.mark.parametrize("chat", [CLIENT, GROUP])
def test_a_label_is_no_speaker(world: World, chat: str) -> None:
    texts = ["Rent: 4500", "The rent is due on the first of each month", "I bought a lamp", "ok"]
    if chat == GROUP:
        said(world, "Dana Levi", MAY, *texts)
    else:
        model = ScriptedChatModel(lambda request: "Thank you.")
        world.use(chat_model=model)
        for text in texts:
            world.say(CLIENT, text)
    hits = {hit.content: hit.score for hit in ask(world, "What about the rent?", chat)}
    assert hits[texts[1]] > 0.7


def test_in_a_group_who_is_named_counts(world: World) -> None:
    said(world, "Dana Levi", MAY, "I am allergic to walnuts")
    said(world, "Omer", MAY + timedelta(hours=8), "I am allergic to peanuts")
    assert first(ask(world, "What is Dana allergic to?")) == "I am allergic to walnuts"
    assert first(ask(world, "What is Omer allergic to?")) == "I am allergic to peanuts"
    both = ask(world, "What are Dana and Omer allergic to?")
    assert abs(both[0].score - both[1].score) < 0.05
    # By the bar of a turn, too: whose line it is is as good as if the line said so.
    (found,) = ask(world, "What is Dana allergic to?", bar=0.7)
    assert found.content == "I am allergic to walnuts"
