"""The effect of importing a table, for each of its sentences; prices, questions and facts."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext as _

from memories_app.facts.facts import fact_key
from memories_app.facts.validation import NewMemory, problems_of
from memories_app.models import Memory, Visibility
from memories_app.store.deduplicate import DUPLICATE
from memories_app.store.remember import Foreseen, memories_foresee, memories_remember
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.text.characters import fold
from sessions_app.memories.tables import columns as table
from sessions_app.memories.tables.opening_hours import hours_entries

NEW, SAME, REPLACES, ASKS, INVALID = "new", "same", "replaces", "asks", "invalid"
STORED = (NEW, REPLACES, ASKS)
# The source of the memories, as pages and the audit log name it.
SOURCE = "table"
VISIBILITIES = (str(Visibility.PUBLIC), str(Visibility.OWNER))


@dataclass(frozen=True)
class Choices:
    """The options for reading a table. ``kind``: empty where the headers determine it."""

    kind: str = ""
    visibility: str = str(Visibility.PUBLIC)
    currency: str = ""


@dataclass(frozen=True)
class Planned:
    """A sentence of the table, and what importing it would do.

    ``older``: the memories that it would replace, or the one that is the same, or the pinned ones
    that staff would be asked about. ``mark`` changes with anything that the preview shows of it.
    """

    entry: table.Entry
    status: str
    older: tuple[Memory, ...] = ()

    @property
    def is_stored(self) -> bool:
        return self.status in STORED

    @property
    def mark(self) -> str:
        shown = [
            self.status,
            self.entry.text,
            *(f"{each.pk} {each.content}" for each in self.older),
        ]
        return hashlib.sha256("\0".join(shown).encode(errors="replace")).hexdigest()[:20]


@dataclass(frozen=True)
class Plan:
    """``unused``: the names of columns that hold something which isn't remembered."""

    kind: str
    rows: tuple[Planned, ...]
    unused: tuple[str, ...]
    choices: Choices

    @property
    def counts(self) -> Mapping[str, int]:
        statuses = [row.status for row in self.rows]
        return {status: statuses.count(status) for status in (*STORED, SAME, INVALID)}

    def new_memory(self, row: Planned) -> NewMemory:
        return _memory(row.entry, self.kind, self.choices.visibility)


def table_plan(text: str, choices: Choices, *, now: datetime) -> Plan:
    """Return what importing the text of a table would do. Nothing is stored.

    now: with the business's time zone. Raises TableError where the table can't be read.
    """
    one_column = choices.kind == table.FACTS
    rows = table.rows_of(text, headers_in=table.known_headers, one_column=one_column)
    columns = table.columns_of(rows, choices.kind)
    entries = list(_checked(_entries(columns, choices, now), columns, choices.visibility))
    if len(entries) > table.MAX_ROWS:
        raise table.TableError(
            _("The table has more than %(most)s rows. Divide it.") % {"most": table.MAX_ROWS}
        )
    fine = [entry for entry in entries if not entry.problem]
    memories = [_memory(entry, columns.kind, choices.visibility) for entry in fine]
    foreseen = dict(zip(map(id, fine), memories_foresee(memories, now=now), strict=True))
    planned = tuple(_planned(entry, foreseen.get(id(entry))) for entry in entries)
    return Plan(columns.kind, planned, tuple(columns.unused), replace(choices, kind=columns.kind))


def _entries(columns: table.Columns, choices: Choices, now: datetime) -> Iterator[table.Entry]:
    readers: Mapping[str, Callable[[], Iterator[table.Entry]]] = {
        table.HOURS: lambda: hours_entries(columns, now=now),
        table.PRICES: lambda: price_entries(columns, currency=choices.currency),
        table.QUESTIONS: lambda: question_entries(columns),
        table.FACTS: lambda: fact_entries(columns),
    }
    return readers[columns.kind]()


def _checked(
    entries: Iterator[table.Entry], columns: table.Columns, visibility: str
) -> Iterator[table.Entry]:
    """Yield the entries by their rows, with the problems that any kind of table can have."""
    overfull = {row.number for row in columns.rows if columns.too_long(row)}
    about: dict[str, table.Entry] = {}
    for entry in sorted(entries, key=lambda each: each.rows[0]):
        problem = entry.problem
        if not problem and overfull & set(entry.rows):
            problem = _(
                "It has more cells than the table has columns: put texts with commas in quotes."
            )
        if not problem:
            found = problems_of(_memory(entry, columns.kind, visibility))
            problem = "; ".join(each.detail for each in found)
        if not problem:
            key = fact_key(entry.subject or entry.text)
            problem = _repeated(entry, about.setdefault(key, entry))
        yield replace(entry, problem=problem)


def _repeated(entry: table.Entry, first: table.Entry) -> str:
    """Return the problem of an entry about something that an earlier row was about."""
    if entry is first:
        return ""
    if fact_key(entry.text) == fact_key(first.text):
        return _("Row %(row)s says the same.") % {"row": first.rows[0]}
    return _("Row %(row)s says otherwise about the same.") % {"row": first.rows[0]}


def _planned(entry: table.Entry, foreseen: Foreseen | None) -> Planned:
    if foreseen is None:
        return Planned(entry, INVALID)
    if foreseen.same is not None:
        return Planned(entry, SAME, (foreseen.same,))
    if foreseen.pinned:
        return Planned(entry, ASKS, foreseen.pinned + foreseen.replaced)
    return Planned(entry, REPLACES if foreseen.replaced else NEW, foreseen.replaced)


def _memory(entry: table.Entry, kind: str, visibility: str) -> NewMemory:
    return NewMemory(
        content=entry.text,
        visibility=visibility,
        source=SOURCE,
        metadata={"table": kind},
        expires_at=entry.ends,
        subject=entry.subject,
    )


# Questions with answers, and facts as they are written.

_ENDS = ("?", "؟", "!", ".", ":", "…")


def question_entries(columns: table.Columns) -> Iterator[table.Entry]:
    """Yield each question with its answer, as one text."""
    for row in columns.rows:
        cells = {name: columns.cell(row, name) for name in ("question", "answer")}
        empty = next((name for name, text in cells.items() if not text), None)
        if empty:
            problem = _("Column “%(column)s” is empty.") % {"column": columns.called(empty)}
            shown = " ".join(filter(None, row.cells))
            yield table.Entry((row.number,), shown, problem=problem)
            continue
        question = cells["question"]
        mark = "" if question.endswith(_ENDS) else "?"
        text = f"{question}{mark} {cells['answer']}"
        yield table.Entry((row.number,), text, f"question {question.rstrip('?؟ ')}")


def fact_entries(columns: table.Columns) -> Iterator[table.Entry]:
    """Yield the facts."""
    for row in columns.rows:
        text = columns.cell(row, "fact")
        problem = _("Column “%(column)s” is empty.") % {"column": columns.called("fact")}
        yield table.Entry(
            (row.number,), text or " ".join(row.cells), problem="" if text else problem
        )


# Store the sentences of a table, all of them or none.


class ChangedSincePreviewError(Exception):
    """The chosen changes aren't those that the table would make now: memories changed meanwhile."""


@dataclass(frozen=True)
class TableImported:
    """The result of an import.

    ``added`` are new, ``replaced`` are new and replaced ``older`` ones; ``known`` were there
    before, ``left_out`` weren't chosen, and ``invalid`` couldn't be.
    """

    added: tuple[Memory, ...]
    replaced: tuple[Memory, ...]
    older: int
    known: int
    left_out: int
    invalid: int


def table_import(
    *, plan: Plan, embedder: Embedder, actor: Actor, chosen: Collection[str] | None = None
) -> TableImported:
    """Store what the plan says. ``chosen``: the marks of the sentences to store; None: all.

    Importing a table again changes nothing. Raises ChangedSincePreviewError, EmbedderError,
    MemoryValidationError, DatabaseError; nothing is stored then.
    """
    storable = [row for row in plan.rows if row.is_stored]
    if chosen is not None and not set(chosen) <= {row.mark for row in storable}:
        raise ChangedSincePreviewError
    wanted = [row for row in storable if chosen is None or row.mark in chosen]
    counts = plan.counts

    def record() -> None:
        audit_record(
            "memory.table",
            actor,
            "memories",
            kind=plan.kind,
            visibility=plan.choices.visibility,
            memories=len(wanted),
        )

    stored = []
    if wanted:
        memories = [plan.new_memory(row) for row in wanted]
        stored = memories_remember(
            memories=memories, embedder=embedder, actor=actor, before_storing=record
        )
    fresh = [one for one in stored if one.status != DUPLICATE]
    return TableImported(
        added=tuple(one.memory for one in fresh if not one.superseded),
        replaced=tuple(one.memory for one in fresh if one.superseded),
        older=len({older for one in fresh for older in one.superseded}),
        known=counts[SAME] + len(stored) - len(fresh),
        left_out=len(storable) - len(wanted),
        invalid=counts[INVALID],
    )


# Prices: one sentence for each item.


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


def price_entries(columns: table.Columns, *, currency: str) -> Iterator[table.Entry]:
    """Yield the sentences. ``currency``: the sign where the table names none; may be empty."""
    for row in columns.rows:
        try:
            yield _entry(columns, row, currency)
        except table.RowProblemError as problem:
            yield table.entry_refused(row, problem)


def _entry(columns: table.Columns, row: table.Row, currency: str) -> table.Entry:
    item, note = columns.cell(row, "item"), columns.cell(row, "note")
    if not item:
        raise table.RowProblemError(
            _("Column “%(column)s” is empty.") % {"column": columns.called("item")}
        )
    hebrew = table.is_hebrew(item)
    price = _price(columns, row, currency, hebrew)
    item = item.rstrip(".:")
    if hebrew:
        sentence = f"המחיר של {item} הוא {price}" if price else f"{item}: ללא תשלום"
    else:
        sentence = f"The price of {item} is {price}" if price else f"{item}: free of charge"
    # The same item in two sizes is two items, and the note tells them apart.
    return table.Entry(
        (row.number,), table.with_note(sentence, note), f"price {item} {note}".strip()
    )


def _price(columns: table.Columns, row: table.Row, currency: str, hebrew: bool) -> str:
    """Return the price as it is written; empty where the item is free."""
    cell = columns.cell(row, "price")
    name = {"column": columns.called("price"), "cell": cell}
    if not cell:
        raise table.RowProblemError(_("Column “%(column)s” is empty.") % name)
    if fold(cell) in _FREE:
        return ""
    found = _PRICE.fullmatch(cell)
    if found is None:
        text = _("Column “%(column)s”: “%(cell)s” is no price. Write 25, 25.50 or ₪25.")
        raise table.RowProblemError(text % name)
    written = (found["before"] + found["after"]).strip()
    sign = _sign(columns.cell(row, "currency") or written, currency)
    if sign is None:
        text = _("Column “%(column)s”: “%(cell)s” has something beside the number: use a note.")
        raise table.RowProblemError(text % name)
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
            raise table.RowProblemError(problem % name)
    whole = re.sub("[.,]", "", whole)
    return f"{whole}.{decimals}" if decimals.strip("0") else whole
