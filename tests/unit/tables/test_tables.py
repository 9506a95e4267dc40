"""Tables as spreadsheets write them, and the sentences that their rows become."""

from __future__ import annotations

import codecs
from datetime import datetime, timezone

import pytest

from sessions_app.memories.tables.columns import (
    FACTS,
    HOURS,
    KINDS,
    MAX_ROWS,
    PRICES,
    QUESTIONS,
    Columns,
    Entry,
    TableError,
    columns_of,
    example_table,
    known_headers,
    rows_of,
    text_of,
)
from sessions_app.memories.tables.opening_hours import hours_entries
from sessions_app.memories.tables.plan import price_entries
from tests.tables import table

NOW = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)
PRICE_LIST = "פריט,מחיר,הערה\nחלה,25,פרוסה\nעוגת גבינה,48,\n"


def columns(text: str, kind: str = "") -> Columns:
    rows = rows_of(text, headers_in=known_headers, one_column=kind == FACTS)
    return columns_of(rows, kind)


def hours(text: str) -> list[Entry]:
    return list(hours_entries(columns(text), now=NOW))


def prices(text: str, currency: str = "") -> list[Entry]:
    return list(price_entries(columns(text), currency=currency))


def said(entries: list[Entry]) -> list[str]:
    assert not [entry.problem for entry in entries if entry.problem]
    return [entry.text for entry in entries]


def hour_of(cells: str) -> Entry:
    (entry,) = hours(f"day,opens,closes,note\nSunday,{cells}\n")
    return entry


# Encodings and separators


@table(
    "content",
    [
        PRICE_LIST.encode(),
        PRICE_LIST.encode("utf-8-sig"),
        codecs.BOM_UTF16_LE + PRICE_LIST.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + PRICE_LIST.encode("utf-16-be"),
        PRICE_LIST.encode("utf-16-le"),
        PRICE_LIST.encode("cp1255"),
    ],
)
def test_hebrew_in_each_encoding(content: bytes) -> None:
    assert said(prices(text_of(content)))[0] == "המחיר של חלה הוא 25 (פרוסה)."


@table("encoding", ["cp1252", "utf-8", "utf-16-le", "utf-16", "utf-32"])
def test_accents_in_each_encoding(encoding: str) -> None:
    table = "item;price\nCrème brûlée à la carte;7,50 €\nKäsespätzle;12 €\n"
    assert said(prices(text_of(table.encode(encoding)))) == [
        "The price of Crème brûlée à la carte is €7.50.",
        "The price of Käsespätzle is €12.",
    ]


@pytest.mark.parametrize(
    ("encoding", "drink"),
    [("cp1256", "قهوة عربية مع هيل"), ("cp1251", "Кофе с молоком"), ("cp1253", "Καφές ελληνικός")],
)
def test_other_scripts_as_old_spreadsheets_write_them(encoding: str, drink: str) -> None:
    table = f"item;price\n{drink};3\n{drink} 2;5\n"
    assert said(prices(text_of(table.encode(encoding))))[0] == f"The price of {drink} is 3."


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_ends_of_lines(separator: str, end: str) -> None:
    lines = ["question,answer", "Where are you?,In Haifa", "", "When?,Always"]
    table = end.join(lines).replace(",", separator)
    found = columns(table)
    assert found.kind == QUESTIONS
    assert [(row.number, *row.cells) for row in found.rows] == [
        (2, "Where are you?", "In Haifa"),
        (4, "When?", "Always"),
    ]


def test_the_line_in_which_excel_names_the_separator() -> None:
    assert columns("sep=;\nitem;price\nTea;5\n").rows[0].cells == ("Tea", "5")


def test_quotes_commas_and_line_breaks_in_cells() -> None:
    found = columns('question,answer\n"Do you deliver, and where?","Yes:\nHaifa, ""Akko"""\nA,B\n')
    assert found.rows[0].cells == ("Do you deliver, and where?", 'Yes:\nHaifa, "Akko"')
    # A row is a spreadsheet's row, however many lines it takes.
    assert found.rows[1].number == 3


def test_a_table_of_one_column_keeps_its_commas() -> None:
    assert columns("fact\nWe deliver, also on Fridays\n").rows[0].cells == (
        "We deliver, also on Fridays",
    )
    unnamed = columns("We bake, we cook\nWe deliver, also on Fridays\n", FACTS)
    assert [row.cells[0] for row in unnamed.rows] == [
        "We bake, we cook",
        "We deliver, also on Fridays",
    ]


def test_hebrew_abbreviations_are_no_quotation_marks() -> None:
    assert said(prices('item,price\nמנה ל"ילד,25 ש"ח\n')) == ['המחיר של מנה ל"ילד הוא 25 ₪.']


# What can't be read


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04\x14\x00", "a spreadsheet's own file"),
        (b"a,b\x00c\n", "isn't a table of text"),
        (b"x" * (512 * 1024 + 1), "larger than 512 KB"),
    ],
)
def test_files_that_are_no_tables(content: bytes, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        text_of(content)


@table(
    ("table", "reason"),
    [
        ("", "The table is empty"),
        ("item,price\n", "a header and no rows"),
        ("colour,size\nred,5\n", "“colour”, “size”"),
        ('item,price\nTea,5\n"Coffee,6\nCake,7\n', "Row 3: a cell's quotation marks don't match"),
        ("item,price,cost\nTea,5,6\n", "Row 1: the columns “price” and “cost” mean the same"),
        ("item,price\n" + "Tea,5\n" * (MAX_ROWS + 1), f"more than {MAX_ROWS} rows"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(table: str, reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        columns(table)


def test_columns_that_are_not_used_are_named() -> None:
    assert columns("item,price,supplier,code\nTea,5,Dana,\n").unused == ["supplier"]


def test_a_chosen_kind_needs_no_headers() -> None:
    assert said(list(price_entries(columns("Tea,5\n", PRICES), currency="$"))) == [
        "The price of Tea is $5."
    ]
    with pytest.raises(TableError, match="lacks a column"):
        columns("item,supplier\nTea,Dana\n", PRICES)


# Opening hours


def test_a_range_of_days_is_a_sentence_a_day() -> None:
    found = hours("day,opens,closes,note\nThu-Sat,8,14:30,kitchen closes earlier\nSun,20.00,2am,\n")
    assert said(found) == [
        "On Thursday we are open from 8:00 to 14:30 (kitchen closes earlier).",
        "On Friday we are open from 8:00 to 14:30 (kitchen closes earlier).",
        "On Saturday we are open from 8:00 to 14:30 (kitchen closes earlier).",
        "On Sunday we are open from 20:00 to 2:00 the next day.",
    ]
    assert found[0].rows == (2,)


@table(
    ("cell", "days"),
    [
        ("א'-ה'", ["ביום ראשון", "ביום שני", "ביום שלישי", "ביום רביעי", "ביום חמישי"]),
        ("ימים א׳–ב׳", ["ביום ראשון", "ביום שני"]),
        ("ראשון עד שני", ["ביום ראשון", "ביום שני"]),
        ("יום שישי", ["ביום שישי"]),
        ("ראשון ושלישי", ["ביום ראשון", "ביום שלישי"]),
        ("שבת", ["בשבת"]),
    ],
)
def test_hebrew_days(cell: str, days: list[str]) -> None:
    found = hours(f'יום,פתיחה,סגירה\n"{cell}",9:00,17:00\n')
    assert said(found) == [f"{day} אנחנו פתוחים מ-9:00 עד 17:00." for day in days]


@table(
    ("day", "count"),
    [("every day", 7), ("Sunday, Tuesday", 2), ("Sun & Mon", 2), ("Fri–Mon", 4), ("Mondays", 1)],
)
def test_english_days(day: str, count: int) -> None:
    assert len(said(hours(f'day,opens,closes\n"{day}",9,17\n'))) == count


def test_two_rows_of_a_day_are_one_sentence() -> None:
    (entry,) = hours("day,opens,closes\nSunday,16:00,19:00\nSunday,8:00,12:00\n")
    assert entry.text == "On Sunday we are open from 8:00 to 12:00 and from 16:00 to 19:00."
    assert entry.rows == (2, 3)
    assert said(hours('day,hours\nSunday,"8-12, 16-19"\n')) == [entry.text]


@table("cells", ["closed,,", ",closed,", ",,closed", "סגור,,", "Closed,closed,"])
def test_closed(cells: str) -> None:
    text = hour_of(cells).text
    assert text in ("On Sunday we are closed.", "ביום ראשון אנחנו סגורים.")


def test_a_date_is_an_exception_that_ends_after_its_day() -> None:
    first, second = hours(
        "date,opens,closes,note\n24/12/2026,9,12,\n2026-12-25,closed,,Christmas\n"
    )
    assert first.text == "On Thursday, 24 December 2026, we are open from 9:00 to 12:00."
    assert second.text == "On Friday, 25 December 2026, we are closed (Christmas)."
    assert second.ends == datetime(2026, 12, 26, tzinfo=timezone.utc)
    (hebrew,) = hours("תאריך,פתיחה,סגירה\n24.12.26,סגור,\n")
    assert hebrew.text == "ביום חמישי, 24 בדצמבר 2026, אנחנו סגורים."


@table(
    ("cells", "reason"),
    [
        ("Someday,9,17,", "Column “day”: “Someday” is no weekday and no date"),
        ("24/12/2025,9,17,", "This day is over"),
        ("31/02/2027,9,17,", "no weekday and no date"),
        ("31/12/9999,9,17,", "no weekday and no date"),
        ("Sunday,9,25:00,", "Column “closes”: “25:00” is no time"),
        ("Sunday,9,,", "Column “closes” is empty"),
        ("Sunday,9,9,", "opens and closes at the same time"),
        ("Sunday,,,", "neither times nor “closed”"),
        ("Sunday,9,closed,", "closed and open"),
        (",9,17,", "It names no day"),
    ],
)
def test_hours_that_can_not_be_used(cells: str, reason: str) -> None:
    (entry,) = hours(f"day,opens,closes,note\n{cells}\n")
    assert reason in entry.problem
    assert entry.rows == (2,)


@pytest.mark.parametrize(
    ("second", "reason"), [("Sunday,11,15", "overlap"), ("Sunday,closed,", "closed and open")]
)
def test_rows_of_a_day_that_disagree(second: str, reason: str) -> None:
    (entry,) = hours(f"day,opens,closes\nSunday,9,12\n{second}\n")
    assert reason in entry.problem
    assert entry.rows == (2, 3)


# Prices


@table(
    ("cell", "price"),
    [
        ("25", "25"), ("25.50", "25.50"), ("25.00", "25"), ('"25,50"', "25.50"),
        ("₪25", "₪25"), ("25 NIS", "₪25"), ("$1 200", "$1200"), ('"1,200"', "1200"),
        ('"1,200.50"', "1200.50"), ('"1.200,50 €"', "€1200.50"), ("25 CHF", "25 CHF"),
        ("20-30", "20–30"),
    ],
)  # fmt: skip
def test_prices_as_they_are_written(cell: str, price: str) -> None:
    assert said(prices(f"item,price\nTea,{cell}\n")) == [f"The price of Tea is {price}."]


def test_the_currency_of_the_row_counts_before_the_chosen_one() -> None:
    table = "item,price,currency\nTea,5,EUR\nCake,6,\nWater,free,\n"
    assert said(prices(table, "₪")) == [
        "The price of Tea is €5.",
        "The price of Cake is ₪6.",
        "Water: free of charge.",
    ]


@table(
    ("cells", "reason"),
    [
        ("Tea,", "Column “price” is empty"),
        (",5", "Column “item” is empty"),
        ("Tea,ask us", "“ask us” is no price"),
        ("Tea,5 a pot", "something beside the number"),
        ("Tea,1.200", "it isn't clear what “1.200” is"),
        ("Tea,-5", "something beside the number"),
    ],
)
def test_prices_that_can_not_be_used(cells: str, reason: str) -> None:
    (entry,) = prices(f"item,price\n{cells}\n")
    assert reason in entry.problem


# The examples


@pytest.mark.parametrize("hebrew", [False, True])
@pytest.mark.parametrize("kind", list(KINDS))
def test_each_example_is_recognised_in_full(kind: str, hebrew: bool) -> None:
    found = columns(text_of(example_table(kind, hebrew=hebrew)))
    assert found.kind == kind
    assert not found.unused
    if kind == HOURS:
        assert len(said(list(hours_entries(found, now=NOW)))) == 8
    if kind == PRICES:
        assert len(said(list(price_entries(found, currency="")))) == 2
