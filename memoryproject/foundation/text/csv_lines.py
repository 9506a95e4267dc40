"""Tables as CSV for spreadsheets."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

CSV_TYPE = "text/csv; charset=utf-8"
# Characters that a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def csv_lines(titles: Sequence[str], rows: Iterable[Iterable[Any]]) -> Iterator[bytes]:
    """Yield the titles and then each row.

    The encoding is UTF-8 with a byte order mark, which spreadsheets need to recognise it. Texts
    that a spreadsheet would evaluate begin with an apostrophe.
    """
    writer = csv.writer(_Echo())
    yield b"\xef\xbb\xbf" + writer.writerow(titles)
    for row in rows:
        yield writer.writerow([_harmless(part) for part in row])


def _harmless(part: Any) -> Any:
    if isinstance(part, str) and part.lstrip(" ").startswith(FORMULA):
        return f"'{part}"
    return "" if part is None else part


class _Echo:
    """A file for csv that returns what is written to it."""

    def write(self, text: str) -> bytes:
        return text.encode()
