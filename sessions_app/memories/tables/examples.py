"""Tables to download and fill in, one for each kind, in English and Hebrew."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from sessions_app.memories.tables.columns import FACTS, HOURS, PRICES, QUESTIONS

Rows = Sequence[Sequence[str]]
_ENGLISH: Mapping[str, Rows] = {
    HOURS: (
        ("day", "opens", "closes", "note"),
        ("Sun–Thu", "8:00", "18:00", ""),
        ("Friday", "8:00", "14:00", "the kitchen closes at 13:00"),
        ("Saturday", "closed", "", ""),
        ("31/12/2099", "closed", "", "an exception: a date instead of a day"),
    ),
    PRICES: (
        ("item", "price", "currency", "note"),
        ("Challah", "25", "₪", ""),
        ("Coffee to go", "12.50", "₪", "with any milk"),
    ),
    QUESTIONS: (
        ("question", "answer"),
        ("Do you deliver?", "Yes, within the city, for orders from ₪100."),
        ("Is there parking?", "There is a car park behind the building, the first hour is free."),
    ),
    FACTS: (
        ("fact",),
        ("We bake everything ourselves, without preservatives.",),
        ("The café has wireless internet for guests.",),
    ),
}
_HEBREW: Mapping[str, Rows] = {
    HOURS: (
        ("יום", "פתיחה", "סגירה", "הערה"),
        ("א'-ה'", "8:00", "18:00", ""),
        ("שישי", "8:00", "14:00", "המטבח נסגר ב-13:00"),
        ("שבת", "סגור", "", ""),
        ("31/12/2099", "סגור", "", "יום מיוחד: תאריך במקום יום"),
    ),
    PRICES: (
        ("פריט", "מחיר", "מטבע", "הערה"),
        ("חלה", "25", "₪", ""),
        ("קפה לדרך", "12.50", "₪", "עם כל סוג חלב"),
    ),
    QUESTIONS: (
        ("שאלה", "תשובה"),
        ("יש משלוחים?", "כן, בתוך העיר, בהזמנה מ-100 ₪."),
        ("יש חניה?", "יש חניון מאחורי הבניין, והשעה הראשונה חינם."),
    ),
    FACTS: (
        ("עובדה",),
        ("אנחנו אופים הכול בעצמנו, בלי חומרים משמרים.",),
        ("בבית הקפה יש אינטרנט אלחוטי לאורחים.",),
    ),
}


def example_table(kind: str, *, hebrew: bool) -> bytes:
    """Return a table as spreadsheets open it: UTF-8 with a byte order mark, lines as in CSV."""
    out = io.StringIO(newline="")
    csv.writer(out).writerows((_HEBREW if hebrew else _ENGLISH)[kind])
    return out.getvalue().encode("utf-8-sig")
