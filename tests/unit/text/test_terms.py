"""What texts are indexed under and what questions look for."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from memoryproject.foundation.retrieval.query import MAX_QUERY_TERMS, informative_terms, query_terms
from memoryproject.foundation.text.characters import BLANKS, fold, readable, shows_nothing
from memoryproject.foundation.text.terms import MAX_TERMS, index_terms, index_text
from memoryproject.foundation.text.tokenizer import MAX_TERM, MAX_TEXT, Kind
from tests.tables import table


def finds(question: str, text: str) -> bool:
    """Whether every telling word of the question is matched by the text."""
    terms = set(index_terms(text))
    telling = [t for t in query_terms(question) if t.kind not in (Kind.FUNCTION, Kind.VAGUE)]
    assert telling
    return all(any(form in terms for form in term.forms) for term in telling)


def kinds(question: str) -> dict[str, Kind]:
    return {term.word: term.kind for term in query_terms(question)}


@table(
    "text",
    [
        *(
            "",
            " \n\t",
            "\u200b",
            "\u2060",
            "\u00ad",
            "\u202e",
            "\u3000",
            " \u200b ",
            "\u3164",
            "\u2800",
        ),
        *("\ufe0f", "\u180e", "\x00\x1f", "\x85", "\U000e0041\U000e007f"),
    ],
)
def test_a_text_of_blanks_shows_nothing(text: str) -> None:
    assert shows_nothing(text)


@table(
    "text",
    [
        *("a", "\u200ba", "א\u200f", "0", "。", "-", "👍", "❤️", "👨‍👩‍👧", "नमस्ते", "สวัสดี", "한글"),
        *("\u0301", "🏴\U000e0067\U000e007f", "مرحبا", "…", "¿"),
    ],
)
def test_any_other_text_shows_something(text: str) -> None:
    assert not shows_nothing(text)
    # As the schema of the API says it.
    assert re.search(f"[^{BLANKS}]", text)


@given(st.text())
def test_any_text_has_terms_that_a_database_takes(text: str) -> None:
    terms = index_terms(text)

    assert terms == index_terms(text)
    assert all(0 < len(term) <= MAX_TERM + 2 and "\x00" not in term for term in terms)
    "".join(terms).encode("utf-8")
    assert query_terms(text) == query_terms(text)


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(alphabet="abcdefghij klm", min_size=1).filter(str.strip))
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    found = set(index_terms(text))

    words = query_terms(text)
    assert all(term.word in found for term in words)


@table("piece", ["a-", "ש", "\u0301", "5,", "公", "ﷺ", "Aa", "חשבוניות ", '"'])
def test_long_texts_are_bounded(piece: str) -> None:
    indexed = index_text(piece * MAX_TEXT)

    assert len(indexed.terms) <= MAX_TERMS
    assert len(query_terms(piece * MAX_TEXT)) <= MAX_QUERY_TERMS


@table(
    ("question", "text"),
    [
        ("5000", "TestCorp owes ₪5,000"),
        ("₪5,000.00", "5000 in cash"),
        ("INV-001", "see inv001"),
        ("inv-001", "invoice INV-001."),
        ("testcorp", "TestCorp's office"),
        ("TestCorp", "Test Corp is late"),
        ("TestCorp", "טסטקורפ חייבת"),
        ("טסטקורפ", "TestCorp owes"),
        ("Testcrop", "TestCorp owes"),
        ("invoices", "one invoice"),
        ("cafe", "Café Noir"),
        ("03-1234567", "call 031234567"),
        ("+972501234567", "my number is +972 50-123-4567"),
        ("050-1234567", "my number is +972 50-123-4567"),
        ("+972501234567", "my number is 050-1234567"),
        ("0501234567", "my number is +972 50 123 4567"),
        ("+15550100123", "call (555) 555-010-0123, room 12"),
        ("dana@shop.example", "write to Dana@shop.example!"),
        ("טסטקורפ", "כתבתי לטסטקורפ"),
        ("לטסטקורפ", "דיברתי עם מטסטקורפ"),
        ("שלטסטקורפ", "טסטקורפ"),
        ("חשבונית", "החשבוניות שלו"),
        ("חשבוניות", "בחשבונית שלו"),
        ("חשבוניתו", "חשבוניות"),
        ("תספורת", "תִּסְפּוֹרֶת"),
        ("שולחן", "שולחנות"),
        ('ש"ח', "5 שח"),
        ("ש״ח", 'ב-5 ש"ח'),
        ("ל-TestCorp", "TestCorp"),
        ("שעה", "שעות"),
        ("товары", "ТОВАРЫ"),
        ("公司", "我的公司很好"),
        ("كتاب", "كِتَاب"),
    ],
)
def test_a_word_is_found_in_another_form(question: str, text: str) -> None:
    assert finds(question, text)


@table(
    ("question", "text"),
    [
        ("INV-001", "INV-014"),
        ("+972501234567", "my number is 050-1234568"),
        ("501234567", "see 1234567"),
        ("5000", "50000"),
        ("Test", "Best"),
        ("Acme", "Apex"),
        ("זטא", "אקמי"),
        ("גלבוע", "כרמל"),
    ],
)
def test_another_word_is_not_found(question: str, text: str) -> None:
    assert not finds(question, text)


def test_names_and_identifiers_tell_most_and_grammar_least() -> None:
    assert kinds("What's the status of INV-031 with Acme and its invoice?") == {
        "what": Kind.FUNCTION,
        "the": Kind.FUNCTION,
        "status": Kind.VAGUE,
        "of": Kind.FUNCTION,
        "inv031": Kind.NAME,
        "inv": Kind.VAGUE,
        "031": Kind.VAGUE,
        "with": Kind.FUNCTION,
        "acm": Kind.NAME,
        "and": Kind.FUNCTION,
        "it": Kind.FUNCTION,
        "invoic": Kind.COMMON,
    }


@table(
    ("question", "topics"),
    [
        ("¿Dónde está la oficina?", {"oficina"}),
        ("Où se trouve le bureau ?", {"trouv", "bureau"}),
        ("Wo ist das Büro?", {"buro"}),
        ("Dove si trova l'ufficio?", {"trova", "lufficio"}),
        ("Onde fica o escritório?", {"fica", "escritorio"}),
        ("Какой адрес офиса?", {"адрес", "офиса"}),
        ("Яка адреса офісу?", {"адреса", "офісу"}),
        ("ما هو عنوان المكتب؟", {"عنوان", "المكتب"}),
        ("办公室在哪里？", {"办公", "公室", "室在"}),
    ],
)
def test_grammar_of_other_languages_names_no_topic(question: str, topics: set[str]) -> None:
    assert {word for word, kind in kinds(question).items() if kind is not Kind.FUNCTION} == {
        fold(word) for word in topics
    }


def test_a_name_that_is_grammar_elsewhere_stays_a_name() -> None:
    assert kinds("Did Ella and Mia study at MIT?") == {
        "did": Kind.FUNCTION,
        "ella": Kind.NAME,
        "and": Kind.FUNCTION,
        "mia": Kind.NAME,
        "studi": Kind.COMMON,
        "at": Kind.FUNCTION,
        "mit": Kind.NAME,
    }


def test_hebrew_grammar_is_known_with_its_prefixes() -> None:
    assert set(kinds("ומה המצב שלך והאם").values()) <= {Kind.FUNCTION, Kind.VAGUE, Kind.PLAIN}
    assert kinds("ומה המצב")["ומה"] is Kind.FUNCTION
    assert kinds("ומה המצב")["המצב"] is Kind.VAGUE


def test_what_follows_about_is_the_topic() -> None:
    assert kinds("tell me about zeta")["zeta"] is Kind.NAME
    assert kinds("is zeta here")["zeta"] is Kind.PLAIN


def test_capitals_tell_nothing_where_all_is_capitals() -> None:
    assert kinds("PLEASE VISIT ZETA SOON")["zeta"] is Kind.PLAIN


def test_candidates_are_looked_for_by_telling_words() -> None:
    def words(question: str) -> list[str]:
        return [term.word for term in informative_terms(query_terms(question))]

    assert words("the invoice") == ["invoic"]
    assert words("the") == ["the"]


def test_the_length_counts_words_and_an_identifier_once_for_each_part() -> None:
    assert index_text("invoice INV-001, לטסטקורפ").length == 4


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_folded_as_every_text_is(text: str) -> None:
    # A letter of another script takes the long way, and changes nothing else.
    assert fold(text + "א") == fold(text) + "א"
    assert readable(text + "א") == readable(text) + "א"
