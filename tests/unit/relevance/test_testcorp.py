"""AC-MEMORY-002 and AC-MEMORY-003: the right company's memories, with score 0.7 or more, and no
other's, in English and Hebrew, with one memory as with many."""

from __future__ import annotations

import pytest

from tests.unit.relevance.store import Store

ENGLISH = (
    "TestCorp owes me ₪5,000 from invoice INV-001 dated January 10, 2026",
    "TestCorp is a software company based in Tel Aviv, CEO is John Smith",
)
ENGLISH_OTHERS = (
    "Acme Ltd owes me ₪3,200 from invoice INV-014 dated December 2, 2025",
    "BlueSky is a marketing agency in Haifa, CEO is Dana Levi",
    "Globex is a software company based in Jerusalem, CEO is Ron Gal",
    "Initech owes me ₪900 from invoice INV-003 dated January 12, 2026",
    "Umbrella status: waiting for their signed contract",
    "Hooli owes me ₪7,000 from invoice INV-044",
    "Stark is a construction company based in Tel Aviv, CEO is Tony Peretz",
    "Wayne Holdings paid invoice INV-010",
    "Soylent is a food company based in Eilat",
)
HEBREW = (
    'טסטקורפ חייבת לי 5,000 ש"ח מחשבונית INV-001 מיום 10 בינואר 2026',
    "לטסטקורפ יש משרד בתל אביב, המנכ\"ל של טסטקורפ הוא ג'ון סמית'",
)
HEBREW_OTHERS = (
    'אקמי חייבת לי 3,200 ש"ח מחשבונית INV-014',
    'בלוסקיי היא סוכנות שיווק בחיפה, המנכ"לית היא דנה לוי',
    'לגלובקס יש משרד בירושלים, המנכ"ל הוא רון גל',
    'איניטק חייבת לי 900 ש"ח מחשבונית INV-003',
    "המצב עם אמברלה: מחכים לחוזה",
    'הולי חייבת לי 7,000 ש"ח',
    "סטארק היא חברת בנייה בתל אביב",
    "ויין שילמה את החשבונית",
    "סוילנט היא חברת מזון מאילת",
)
QUESTIONS = (
    "What's the status with TestCorp?",
    "Tell me about TestCorp",
    "whats up with testcorp",
    "TestCorp's status?",
    "Testcrop news?",
    "מה המצב עם TestCorp?",
    "מה קורה עם טסטקורפ?",
    "מה הסטטוס של טסטקוֹרְפּ",
    "יש חדש בטסטקורפ?",
    "תזכיר לי מה עם טסטקורף",
)
SMALL_TALK = (
    "hello, how are you?",
    "thanks!",
    "ok",
    "what's new?",
    "see you tomorrow",
    "מה נשמע?",
    "תודה רבה",
    "בוקר טוב",
)
UNKNOWN_COMPANIES = ("What's the status with Zeta?", "Tell me about Zeta", "מה המצב עם זטא?")
STORES = {
    "English": (ENGLISH, ENGLISH_OTHERS),
    "Hebrew": (HEBREW, HEBREW_OTHERS),
    "both": (ENGLISH + HEBREW, ENGLISH_OTHERS + HEBREW_OTHERS),
    "one": (ENGLISH[:1], ()),
    "one in Hebrew": (HEBREW[:1], ()),
    "two": (ENGLISH, ()),
    "many": (
        ENGLISH,
        tuple(f"Comp{n} owes me ₪{n * 7} from invoice INV-{n + 100}" for n in range(60)),
    ),
}


@pytest.fixture(params=sorted(STORES), scope="module")
def companies(request: pytest.FixtureRequest) -> tuple[Store, tuple[str, ...]]:
    about, others = STORES[request.param]
    return Store(about + others), about


@pytest.mark.parametrize("question", QUESTIONS)
def test_ac_memory_002_003_only_the_company_asked_for_is_recalled(
    companies: tuple[Store, tuple[str, ...]], question: str
) -> None:
    store, about = companies

    ranked = store.ask(question)

    assert {text for _, text in ranked[: len(about)]} == set(about)
    assert {text for score, text in ranked if score >= 0.7} == set(about)


@pytest.mark.parametrize("question", SMALL_TALK + UNKNOWN_COMPANIES)
def test_small_talk_and_unknown_companies_recall_nothing(
    companies: tuple[Store, tuple[str, ...]], question: str
) -> None:
    store, _ = companies

    assert store.recalled(question) == []


def test_debts_are_found_by_topic() -> None:
    store = Store(ENGLISH + ENGLISH_OTHERS)

    best = [text for _, text in store.ask("who owes me money?")[:4]]

    assert all("owes me" in text for text in best)
