"""Receipts as PDF: in the reader's language, from its side, with names as they are written."""

from __future__ import annotations

import io
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader

from sessions_app.forgetting.receipts.document import Document, Part
from sessions_app.forgetting.receipts.fonts import BOLD, REGULAR, readable, text_width
from sessions_app.forgetting.receipts.pdf import as_pdf
from sessions_app.forgetting.receipts.pdf_lines import in_place, lines_of
from sessions_app.models import ForgetReceipt

HASH = "1f" * 32
ID = "12345678-abcd-4000-8000-000000000001"
HEBREW = "חיפשו לאחר מכן, ולא נמצא"


def a_document(language: str, *facts: tuple[str, str]) -> Document:
    return Document("Title", [Part("Head", facts=facts)], language=language)


def reader(document: Document) -> PdfReader:
    return PdfReader(io.BytesIO(as_pdf(document)))


def read(document: Document) -> str:
    """The PDF's text, as far as it isn't cut over two lines."""
    return "\n".join(page.extract_text() for page in reader(document).pages)


def begins(document: Document) -> dict[str, float]:
    """Where the texts of the first page begin on its left: points from its edge."""
    found: dict[str, float] = {}

    def seen(text: str, _graphics: Any, place: Any, _font: Any, _size: Any) -> None:
        if text.strip():
            found[text.strip()] = place[4]

    reader(document).pages[0].extract_text(visitor_text=seen)
    return found


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("dana & <b>Zoë</b>", "dana & <b>Zoë</b>"),
        ("Дана Ελένη ქართული", "Дана Ελένη ქართული"),
        ("Zoe\u0308", "Zoë"),
        ("דנה כהן", "דנה כהן"),
        # A shin whose dot is built in: set apart, it would stand on the wrong side.
        ("שׁ", "\ufb2a"),
        ("שָׂ", "\ufb2b\u05b8"),
        ("Lee 😀 中", "Lee [U+1F600] [U+4E2D]"),
        # What takes a shaper.
        ("علي", "[U+0639][U+0644][U+064A]"),
        ("ที่", "[U+0E17][U+0E35][U+0E48]"),
        ("a\u202eb\x00c\nd\u00ade\u2067", "a[U+202E]b[U+0000]c[U+000A]d[U+00AD]e[U+2067]"),
        ("\u2028\u200b\ufeff", "[U+2028][U+200B][U+FEFF]"),
        ("x\u0336", "x[U+0336]"),
    ],
)
def test_what_the_font_has_is_drawn_and_the_rest_told_by_code_points(name: str, shown: str) -> None:
    assert readable(name) == shown
    # It is drawn by the font: no other one is in the file.
    pdf: Any = reader(a_document("en", ("By whom", name)))
    fonts = {
        font.get_object()["/BaseFont"].partition("+")[2]
        for page in pdf.pages
        for font in page["/Resources"]["/Font"].values()
    }
    assert fonts <= {REGULAR, BOLD}


@pytest.mark.parametrize("language", ["en", "he"])
def test_a_hebrew_name_is_drawn_from_its_right(language: str) -> None:
    # pypdf reads stretches of Hebrew from the right, so that what stands right on paper reads
    # right.
    assert "דנה כהן" in read(a_document(language, ("By whom", "דנה כהן")))


def test_columns_begin_where_reading_begins() -> None:
    values = ("Id", ID), ("Hash", HASH)
    english, hebrew = (begins(a_document(language, *values)) for language in ("en", "he"))
    assert english["Id"] == english["Hash"] == english["Title"] < english[ID] == english[HASH]
    assert hebrew[ID] < hebrew["Id"]
    assert hebrew["Id"] > hebrew["Hash"], "names of different lengths stand at the same right edge"
    ends = [hebrew[text] + text_width(text, REGULAR, 9) for text in ("Id", "Hash")]
    assert ends[0] == pytest.approx(ends[1], abs=0.01)
    assert english["1"] > 300 > hebrew["1"], "the page's number stands at the other side"


def test_a_value_without_hebrew_reads_from_the_left_in_a_hebrew_document() -> None:
    times = "2026-03-02 00:30:05 (Asia/Jerusalem), 2026-03-01 22:30:05 (UTC)"
    shown = read(a_document("he", ("מתי", times), ("על ידי מי", "C++, (v. -1)!")))
    assert times in shown
    assert "C++, (v. -1)!" in shown


def test_the_file_says_its_language_and_side() -> None:
    roots: dict[str, Any] = {
        name: reader(a_document(name)).trailer["/Root"] for name in ("en", "he")
    }
    assert roots["en"]["/Lang"] == "en"
    assert roots["he"]["/Lang"] == "he"
    assert roots["he"]["/ViewerPreferences"]["/Direction"] == "/R2L"
    assert "/ViewerPreferences" not in roots["en"]


@pytest.mark.parametrize(
    ("text", "left_to_right", "right_to_left"),
    [
        ("dana (x)", "dana (x)", "dana (x)"),
        ("דנה", "הנד", "הנד"),
        # Brackets are turned with the stretch that they are in.
        ("דנה (משרד)", "(דרשמ) הנד", "(דרשמ) הנד"),
        ("by: דנה (x)", "by: הנד (x)", "(x) הנד :by"),
        ("צוות: dana (x)", "תווצ: dana (x)", "dana (x) :תווצ"),
        ("<דנה>", "<הנד>", "<הנד>"),
        # Ids, dates and times are whole, whatever they begin with.
        (f"מזהה {ID}", f"ההזמ {ID}", f"{ID} ההזמ"),
        ("ב-2026-03-01, 12:30", "ב-2026-03-01, 12:30", "12:30 ,2026-03-01-ב"),
        ("שורות: 12", "12 :תורוש", "12 :תורוש"),
        ("א [U+0645][U+062D]", "א [U+0645][U+062D]", "[U+0645][U+062D] א"),
        ("", "", ""),
    ],
)
def test_where_characters_stand(text: str, left_to_right: str, right_to_left: str) -> None:
    assert in_place(text, right_to_left=False) == left_to_right
    assert in_place(text, right_to_left=True) == right_to_left


@given(
    st.text(alphabet="abדנהם 0123456789-:.,;()[]<>{}«»\"'/+@_[U+05]\u05b8", max_size=40),
    st.booleans(),
)
def test_no_character_is_lost_or_made(text: str, right_to_left: bool) -> None:
    either = str.maketrans(")]>}»", "([<{«")
    placed = in_place(text, right_to_left=right_to_left)
    assert Counter(placed.translate(either)) == Counter(text.translate(either))


@given(st.text(max_size=60), st.floats(min_value=40, max_value=300))
def test_lines_hold_the_whole_text_within_their_width(text: str, width: float) -> None:
    shown = readable(text)

    def measure(line: str) -> float:
        return text_width(line, REGULAR, 9)

    lines = lines_of(shown, width, measure)
    assert "".join(lines).replace(" ", "") == shown.replace(" ", "")
    # A code point is written out in one piece, however wide.
    assert all(measure(line) <= width + 0.01 or line.startswith("[U+") for line in lines)


def test_wrapped_hebrew_reads_from_the_first_line_on() -> None:
    words = " ".join(f"{HEBREW} {number}" for number in range(10, 30))
    lines = [line for line in read(a_document("he", ("מדוע", words))).split("\n") if line]
    found = [next(at for at, line in enumerate(lines) if f"{n}" in line) for n in range(10, 30)]
    assert found == sorted(found)
    assert len(set(found)) > 5


def test_a_value_longer_than_a_page_goes_on_over_the_next() -> None:
    pdf = reader(a_document("en", ("By whom", "😀" * 3_000), ("Id", ID)))
    assert len(pdf.pages) > 2
    text = "".join(page.extract_text() for page in pdf.pages)
    assert text.count("[U+1F600]") == 3_000
    assert ID in text


def test_no_heading_stays_alone_at_the_foot_of_a_page() -> None:
    # Of different lengths, so that a page ends at every place of a part.
    parts = [
        Part(f"Head {number}", facts=[("Id", ID)] * (1 + number * 7 % 11)) for number in range(300)
    ]
    pages = reader(Document("Title", parts, language="en")).pages
    assert len(pages) > 20
    for page in pages:
        *_, last, _number = page.extract_text().strip().split("\n")
        assert not last.startswith("Head")


def test_a_run_of_thousands_takes_as_many_lines_as_it_has() -> None:
    parts = [Part(f"{number}. דנה", facts=[("מזהה", ID)]) for number in range(5_000)]
    pdf = reader(Document("Title", parts, language="he"))
    assert "4999" in pdf.pages[-1].extract_text()
    assert len(pdf.pages) < 400


def test_documents_made_at_once_are_the_same_as_one_by_one() -> None:
    documents = [
        a_document(
            language, ("By whom", f"{HEBREW} {number} Zoë Дана áéíóúàèìòùäëïöüÿçñ"), ("Hash", HASH)
        )
        for number in range(40)
        for language in ("en", "he")
    ]
    alone = [as_pdf(document) for document in documents]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(as_pdf, documents)) == alone
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.django_db
def test_readers_get_it_in_their_language(admin_client: Client) -> None:
    receipt = ForgetReceipt.objects.create(
        kind="memory", object_id=ID, actor_kind="staff", actor="דנה", content_hash=HASH,
        swept={"memories_app_memory": 1}, probe="absent",
    )  # fmt: skip
    address = f"/admin/sessions_app/forgetreceipt/{receipt.receipt_id}/pdf/"

    def shown(language: str) -> str:
        pdf = admin_client.get(address, headers={"Accept-Language": language}).content
        return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)

    english, hebrew = shown("en"), shown("he")
    for text in (str(receipt.receipt_id), ID, HASH, "דנה"):
        assert text in english
        assert text in hebrew
    assert "Searched afterwards" in english
    assert HEBREW in hebrew
    assert "Receipt" not in hebrew
