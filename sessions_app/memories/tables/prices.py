"""Prices: one sentence for each item."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.utils.translation import gettext as _

from memoryproject.foundation.text.characters import fold
from sessions_app.memories.tables.columns import (
    Columns,
    Entry,
    RowProblemError,
    entry_refused,
    is_hebrew,
    with_note,
)
from sessions_app.memories.tables.read_table import Row

CURRENCIES = ("₪", "$", "€", "£")
_SIGNS = {
    fold(word): sign
    for sign, words in (
        ("₪", '₪,ils,nis,shekel,shekels,ש"ח,ש״ח,שח,שקל,שקלים'),
        ("$", "$,usd,us$,dollar,dollars,דולר,דולרים"),
        ("€", "€,eur,euro,euros,אירו,יורו"),
        ("£", "£,gbp,pound,pounds,לירה שטרלינג"),
    )
    for word in words.split(",")
}
_FREE = {fold(each) for each in ("free", "free of charge", "gratis", "חינם", "ללא תשלום", "בחינם")}
_AMOUNT = r"\d[\d.,' \u00a0]*"
_PRICE = re.compile(
    rf"(?P<before>\D*?)(?P<from>{_AMOUNT})(?:[-–—](?P<to>\s*{_AMOUNT}))?(?P<after>\D*)"
)
_CODE = re.compile(r"[A-Za-z]{3}")


def price_entries(columns: Columns, *, currency: str) -> Iterator[Entry]:
    """Yield the sentences. ``currency``: the sign where the table names none; may be empty."""
    for row in columns.rows:
        try:
            yield _entry(columns, row, currency)
        except RowProblemError as problem:
            yield entry_refused(row, problem)


def _entry(columns: Columns, row: Row, currency: str) -> Entry:
    item, note = columns.cell(row, "item"), columns.cell(row, "note")
    if not item:
        raise RowProblemError(
            _("Column “%(column)s” is empty.") % {"column": columns.called("item")}
        )
    hebrew = is_hebrew(item)
    price = _price(columns, row, currency, hebrew)
    item = item.rstrip(".:")
    if hebrew:
        sentence = f"המחיר של {item} הוא {price}" if price else f"{item}: ללא תשלום"
    else:
        sentence = f"The price of {item} is {price}" if price else f"{item}: free of charge"
    # The same item in two sizes is two items, and the note tells them apart.
    return Entry((row.number,), with_note(sentence, note), f"price {item} {note}".strip())


def _price(columns: Columns, row: Row, currency: str, hebrew: bool) -> str:
    """Return the price as it is written; empty where the item is free."""
    cell = columns.cell(row, "price")
    name = {"column": columns.called("price"), "cell": cell}
    if not cell:
        raise RowProblemError(_("Column “%(column)s” is empty.") % name)
    if fold(cell) in _FREE:
        return ""
    found = _PRICE.fullmatch(cell)
    if found is None:
        text = _("Column “%(column)s”: “%(cell)s” is no price. Write 25, 25.50 or ₪25.")
        raise RowProblemError(text % name)
    written = (found["before"] + found["after"]).strip()
    sign = _sign(columns.cell(row, "currency") or written, currency)
    if sign is None:
        text = _("Column “%(column)s”: “%(cell)s” has something beside the number: use a note.")
        raise RowProblemError(text % name)
    amounts = [_amount(found[each], name) for each in ("from", "to") if found[each]]
    amount = "–".join(amounts)
    if sign not in CURRENCIES:
        return f"{amount} {sign}".strip()
    return f"{amount} {sign}" if hebrew else f"{sign}{amount}"


def _sign(written: str, otherwise: str) -> str | None:
    """Return the sign of a currency, or its code; None where it is none."""
    if not written:
        return otherwise
    known = _SIGNS.get(fold(written).strip(" ."))
    if known or not _CODE.fullmatch(written):
        return known
    return written.upper()


def _amount(text: str, name: dict[str, str]) -> str:
    """Return an amount with a point before its decimals: 1,200.50 and 1.200,50 are 1200.50."""
    plain = re.sub("[' \u00a0]", "", text).rstrip(".,")
    marks = re.findall("[.,]", plain)
    whole, mark, decimals = plain, "", ""
    if marks:
        mark = marks[-1]
        whole, _point, decimals = plain.rpartition(mark)
        thousands = len(set(marks)) == 1 and (len(marks) > 1 or mark == ",") and len(decimals) == 3
        if thousands:
            whole, decimals = plain, ""
        elif not 1 <= len(decimals) <= 2:
            problem = _(
                "Column “%(column)s”: it isn't clear what “%(cell)s” is. Write 1200 or 1.20."
            )
            raise RowProblemError(problem % name)
    whole = re.sub("[.,]", "", whole)
    return f"{whole}.{decimals}" if decimals.strip("0") else whole
