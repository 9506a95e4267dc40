"""Good documents give their text, in the sandbox as without it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from memoryproject.foundation.integrations.documents.read_document import in_reading_order
from memoryproject.foundation.integrations.documents.sandbox import SandboxExtractor
from memoryproject.foundation.integrations.documents.sniffing import (
    DOCX,
    PDF,
    TEXT,
    DocumentError,
    ExtractedText,
    TextExtractor,
)
from memoryproject.foundation.text.chunks import MAX_COUNT, TARGET, cut_text
from tests.documents import files
from tests.doubles.direct_extractor import DirectExtractor
from tests.tables import table

Read = Callable[[bytes], ExtractedText]


# The sandbox is a process for each file.
@pytest.fixture(params=[pytest.param(SandboxExtractor, marks=pytest.mark.slow), DirectExtractor])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Read:
    """Reads bytes as a file whose name says nothing."""
    extractor: TextExtractor = request.param()

    def extract(content: bytes) -> ExtractedText:
        path = tmp_path / "uploaded"
        path.write_bytes(content)
        return extractor.extract(path)

    return extract


@pytest.fixture
def direct(tmp_path: Path) -> Read:
    def extract(content: bytes) -> ExtractedText:
        path = tmp_path / "uploaded"
        path.write_bytes(content)
        return DirectExtractor().extract(path)

    return extract


def whole(found: ExtractedText) -> str:
    return "\n".join(section.text for section in found.sections)


def test_a_pdf_by_pages(read: Read) -> None:
    found = read(files.pdf("TestCorp pays in 30 days.", "It ships on Mondays.", title="Terms"))
    assert (found.media_type, found.pages, found.title) == (PDF, 2, "Terms")
    assert [(section.page, section.text) for section in found.sections] == [
        (1, "TestCorp pays in 30 days."),
        (2, "It ships on Mondays."),
    ]


def test_a_word_file_with_a_table(read: Read) -> None:
    content = files.docx("Prices of TestCorp", table=[["Bolt", "3"], ["Nut", "4"]], title="List")
    found = read(content)
    assert (found.media_type, found.pages, found.title) == (DOCX, None, "List")
    assert whole(found).split("\n") == ["Prices of TestCorp", "", "Bolt | 3", "Nut | 4", ""]


def test_a_text_file(read: Read) -> None:
    found = read("# Terms\r\nשלום TestCorp\n".encode())
    assert (found.media_type, found.pages) == (TEXT, None)
    assert whole(found) == "# Terms\nשלום TestCorp\n"


def test_a_pdf_that_anybody_may_open_is_read(read: Read) -> None:
    """Encrypted against printing or changes, with an empty password."""
    for algorithm in ("RC4-128", "AES-128", "AES-256"):
        assert whole(read(files.encrypted_pdf("", algorithm=algorithm))) == "A secret of TestCorp."


def test_pages_without_text_are_warned_of(direct: Read) -> None:
    found = direct(files.pdf("Here is text.", "", ""))
    assert found.warnings == ["2 of 3 pages hold no text."]


def test_word_text_in_boxes_insertions_and_links_is_read_not_deleted_text(direct: Read) -> None:
    body = (
        b"<w:p><w:ins><w:r><w:t>new </w:t></w:r></w:ins>"
        b"<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
        b"<w:hyperlink><w:r><w:t>linked</w:t></w:r></w:hyperlink></w:p>"
        b"<w:sdt><w:sdtContent>" + files.paragraph("controlled") + b"</w:sdtContent></w:sdt>"
        b"<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>"
        + files.paragraph("boxed")
        + b"</w:txbxContent></mc:Choice><mc:Fallback>"
        + files.paragraph("boxed")
        + b"</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert whole(direct(files.docx_with(body))).split() == ["new", "linked", "controlled", "boxed"]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("שלום, המחיר הוא 100 שקלים", "utf-8-sig"),
        ("שלום, המחיר הוא 100 שקלים", "utf-16"),
        ("שלום, המחיר הוא 100 שקלים", "utf-16-le"),
        ("שלום, המחיר הוא 100 שקלים", "utf-16-be"),
        ("שלום, המחיר הוא 100 שקלים", "utf-32"),
        ("שלום, המחיר הוא 100 שקלים", "cp1255"),
        ("TestCorp: שלום, המחיר הוא €100", "cp1255"),
        ("Café déjà vu à la carte, naïve façade", "cp1252"),
        ("Привет, цена равна ста рублям за штуку", "cp1251"),
    ],
)
def test_text_in_other_encodings(text: str, encoding: str, direct: Read) -> None:
    assert whole(direct(text.encode(encoding))) == text


@pytest.mark.parametrize("line", ["שלום עולם", "תנאי תשלום"])
def test_hebrew_of_a_pdf_that_stands_in_visual_order(line: str, direct: Read) -> None:
    """As most programs write it: pypdf turns the letters round."""
    assert whole(direct(files.hebrew_pdf(line, visual=True))).strip() == line


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff\x00\x00" * 20, "unknown_type"),
        (b"\x7fELF\x02\x01\x01" + bytes(60), "unknown_type"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "unknown_type"),
        (b"{\\rtf1 hello}", "unknown_type"),
        (b"<!DOCTYPE html><p>hello", "unknown_type"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "unknown_type"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (b"PK\x03\x04 and then nothing", "damaged"),
        (b"%PDF-1.7 and then nothing", "damaged"),
        (files.pdf("", ""), "no_text"),
        (files.docx(""), "no_text"),
        (files.encrypted_pdf("password"), "encrypted"),
        (files.pdf("TestCorp pays in 30 days.")[:200], "damaged"),
        (files.docx("TestCorp")[:2000], "damaged"),
    ],
)
def test_what_cannot_be_read_says_why(content: bytes, code: str, direct: Read) -> None:
    with pytest.raises(DocumentError) as caught:
        direct(content)
    assert caught.value.code == code
    assert caught.value.permanent


def test_hebrew_with_a_number_in_visual_order(direct: Read) -> None:
    """As it stands on paper, from left to right."""
    page = files.hebrew_pdf("לקש 100 אוה ריחמה", visual=False)
    assert whole(direct(page)) == "המחיר הוא 100 שקל"


# Hebrew of a PDF in reading order: what pypdf makes of pages that Chromium printed.


LINES = [
    ('. שקל, כולל מע"מ100 המחיר הוא', 'המחיר הוא 100 שקל, כולל מע"מ.'),
    (" יום )שוטף(.30  משלמת תוךTestCorp חברת", "חברת TestCorp משלמת תוך 30 יום (שוטף)."),
    ("English with שלום עולם inside.", "English with שלום עולם inside."),
    ("כדי לראות מה קורה כאשר השורה נשברת", "כדי לראות מה קורה כאשר השורה נשברת"),
    (
        " באמצע.English  וגם מילה2026 העמוד, ויש בה גם מספר",
        "העמוד, ויש בה גם מספר 2026 וגם מילה English באמצע.",
    ),
    ('"שלום" אמר האיש', '"שלום" אמר האיש'),
    ("12:30 בשעה", "בשעה 12:30"),
    ("", ""),
]


@table(("extracted", "read"), LINES)
def test_lines_that_chromium_printed(extracted: str, read: str) -> None:
    page = "כל העמוד הזה כתוב בעברית ורק מעט ממנו באנגלית"
    assert in_reading_order(f"{page}\n{extracted}").split("\n") == [page, read]


def test_letters_that_stood_in_reading_order_are_turned_back() -> None:
    """pypdf turned them round; words that begin with final letters show it."""
    line = "שלום לכם חברים"
    assert in_reading_order(line[::-1]) == line


def test_a_page_in_latin_letters_is_left_as_it_is() -> None:
    page = "The price is 100. שלום (עולם) the end, and more of it."
    assert in_reading_order(page) == page


@given(st.text(alphabet="אבגםן ab1()., \n", max_size=60))
def test_no_letter_is_lost(text: str) -> None:
    assert sorted(filter(str.isalnum, in_reading_order(text))) == sorted(filter(str.isalnum, text))


# Cutting long texts: nothing is lost, nothing is too long, sentences stay whole.


PIECES = st.sampled_from(
    [
        "TestCorp pays.",
        " ",
        "\n",
        "\n\n",
        "# Terms\n",
        "שלום, מה שלומך?",
        "。",
        "ש\u05b8\u05dc",
        "x" * 40,
    ]
)


def bare(text: str) -> str:
    return "".join(text.split())


@given(
    st.one_of(st.text(max_size=400), st.lists(PIECES, max_size=80).map("".join)),
    st.integers(min_value=10, max_value=60),
    st.integers(min_value=60, max_value=90),
)
def test_every_character_is_in_exactly_one_passage(text: str, target: int, most: int) -> None:
    passages = cut_text(text, target=target, most=most)
    end = 0
    for passage in passages:
        assert passage.start >= end
        assert text[passage.start : passage.end] == passage.text == passage.text.strip()
        assert 0 < len(passage.text) <= most
        assert not text[end : passage.start].strip()
        end = passage.end
    assert not text[end:].strip()
    assert "".join(bare(passage.text) for passage in passages) == bare(text)


SENTENCES = [f"Sentence number {number} is about clause {number} of it." for number in range(200)]


def test_passages_are_of_whole_sentences_and_near_the_target() -> None:
    passages = cut_text(" ".join(SENTENCES))
    for passage in passages:
        assert passage.text.startswith("Sentence")
        assert passage.text.endswith(".")
    assert all(TARGET // 2 <= len(passage.text) <= MAX_COUNT for passage in passages[:-1])


def test_sentences_that_are_wrapped_over_lines_stay_whole() -> None:
    """Text of a PDF has a line's end wherever the page had one."""
    text = textwrap.fill(" ".join(SENTENCES), width=80)
    passages = cut_text(text)
    assert len(passages) > 5
    assert all(passage.text.split()[0] == "Sentence" for passage in passages)
    assert all(passage.text.endswith(".") for passage in passages)


def test_the_lines_of_a_list_stay_whole() -> None:
    lines = [
        f"- item {number} of a rather long list of all that is sold here" for number in range(90)
    ]
    passages = cut_text("\n".join(lines))
    assert len(passages) > 3
    assert [line for passage in passages for line in passage.text.split("\n")] == lines


def test_a_word_that_is_too_long_is_cut_anywhere() -> None:
    assert [len(passage.text) for passage in cut_text("x" * 3000)] == [1200, 1200, 600]


@pytest.mark.parametrize("heading", ["## Delivery", "Delivery", "משלוחים"])
def test_a_heading_stays_with_what_follows(heading: str) -> None:
    before = " ".join(SENTENCES[:15])
    after = " ".join(SENTENCES[20:35])
    passages = cut_text(f"{before}\n\n{heading}\n\n{after}")
    (found,) = [passage for passage in passages if heading in passage.text]
    assert found.text.startswith(heading)
    assert len(found.text) > len(heading) + 100
