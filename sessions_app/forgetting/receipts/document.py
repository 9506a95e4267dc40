"""Build a document from a receipt, or from those of a run: titles, facts and tables.

The document is rendered as text or PDF.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils.translation import get_language, get_language_info
from django.utils.translation import gettext as _

from memoryproject.foundation.errors.stored_errors import translate_error
from sessions_app.forgetting.receipts.receipt_labels import (
    actor_words,
    left_words,
    looks_words,
    probe_words,
    swept_words,
)
from sessions_app.models import ForgetItem, ForgetReceipt, ForgetRun

TIME = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True)
class Part:
    """A heading with facts (name and value) or a table below it."""

    title: str
    facts: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Document:
    title: str
    parts: Sequence[Part] = field(default_factory=list)
    notes: Sequence[str] = ()
    # The reader's language, in which the document is written.
    language: str = field(default_factory=lambda: get_language() or settings.LANGUAGE_CODE)

    @property
    def is_right_to_left(self) -> bool:
        return bool(get_language_info(self.language)["bidi"])


def times_of(moment: datetime) -> str:
    """Return the time in the business's time zone and, where that differs, in UTC."""
    zone = settings.BUSINESS_TIME_ZONE
    own = moment.astimezone(ZoneInfo(zone)).strftime(TIME)
    utc = moment.astimezone(timezone.utc).strftime(TIME)
    return f"{utc} (UTC)" if own == utc else f"{own} ({zone}), {utc} (UTC)"


def receipt_facts(receipt: ForgetReceipt) -> list[tuple[str, str]]:
    """Return everything that a receipt says except its tables."""
    return [
        (_("Receipt"), str(receipt.receipt_id)),
        (_("What was erased"), str(receipt.get_kind_display())),
        (_("Its id"), str(receipt.object_id)),
        (_("When"), times_of(receipt.forgotten_at)),
        (_("By whom"), actor_words(receipt.actor_kind, receipt.actor)),
        *request_facts(receipt),
        (_("Check"), probe_words(receipt.probe)),
        (_("Keyed hash of the content"), receipt.content_hash),
    ]


def request_facts(row: ForgetReceipt | ForgetRun) -> list[tuple[str, str]]:
    """Return who wanted the erasure and the number of that request, as far as it was stated."""
    facts = []
    if row.requester:
        facts.append((_("Who asked for it"), str(row.get_requester_display())))
    if row.request_number:
        facts.append((_("Request number"), row.request_number))
    return facts


def receipt_document(receipt: ForgetReceipt) -> Document:
    """Build the document of one receipt."""
    return Document(
        title=_("Erasure receipt"),
        parts=[
            Part(_("Action"), facts=receipt_facts(receipt)),
            _swept(receipt.swept),
            *_left(receipt),
            *_looks(receipt),
        ],
        notes=_notes(),
    )


def run_document(run: ForgetRun) -> Document:
    """Build the document of a run: its figures, each object with its receipt, and all rows."""
    items = list(run.items.select_related("receipt").order_by("number"))
    swept: Counter[str] = Counter()
    for item in items:
        swept.update(item.receipt.swept if item.receipt else {})
    facts = [
        (_("Erasure"), str(run.run_id)),
        (_("By whom"), actor_words("staff", run.asked_by)),
        *request_facts(run),
        (_("Begun"), times_of(run.confirmed_at) if run.confirmed_at else "–"),
        (_("Ended"), times_of(run.finished_at) if run.finished_at else "–"),
        (_("Things chosen"), str(run.total)),
        (_("Things with a receipt"), str(sum(1 for item in items if item.receipt))),
        (_("Items that were not erased"), str(run.failed)),
    ]
    return Document(
        title=_("Erasure receipts"),
        parts=[Part(_("Action"), facts=facts), _swept(swept), *map(_item, items)],
        notes=_notes(),
    )


def _item(item: ForgetItem) -> Part:
    title = f"{item.number}. {item.get_kind_display()}: {item.get_state_display()}"
    receipt = item.receipt
    if receipt is None:
        facts = [(_("Its id"), str(item.object_id))]
        if item.error:
            facts.append((_("Why"), translate_error(item.error)))
        return Part(title, facts=facts)
    rows = [f"{name}: {count}" for name, count in swept_words(receipt.swept)]
    return Part(title, facts=[*receipt_facts(receipt), (_("Rows"), "; ".join(rows))])


def _swept(swept: dict[str, int]) -> Part:
    rows = [(name, str(count)) for name, count in swept_words(swept)]
    return Part(_("What was removed"), columns=(_("where"), _("rows")), rows=rows)


def _left(receipt: ForgetReceipt) -> list[Part]:
    if not receipt.still_there:
        return []
    columns = (_("what"), _("id"), _("what to do"))
    return [Part(_("What is still there"), columns=columns, rows=left_words(receipt.still_there))]


def _looks(receipt: ForgetReceipt) -> list[Part]:
    """Return the tables of the probe's steps; empty for a receipt without a record of them."""
    looks = looks_words(receipt.probe_details)
    if not looks:
        return []
    columns = (_("where"), "{} / {}".format(_("queries"), _("rows")))
    rows = [(name, f"{queries} / {rows}") for name, queries, rows in looks]
    return [Part(_("What the check searched"), columns=columns, rows=rows)]


def _notes() -> list[str]:
    return [
        _("None of this can be restored. The receipt holds nothing of what was erased."),
        _(
            "The hash is keyed: with the server's key it can be shown that a text is what "
            "was erased; without it nobody finds out by trying."
        ),
        _("Backups that were made before still hold it until they are deleted."),
    ]


# Render a document as plain text.


def as_text(document: Document) -> str:
    """Return the lines with the line ends that every system reads."""
    return "\r\n".join(_lines(document)) + "\r\n"


def _lines(document: Document) -> Iterator[str]:
    yield document.title
    yield "=" * len(document.title)
    for part in document.parts:
        yield ""
        yield from _part(part)
    yield ""
    yield from document.notes


def _part(part: Part) -> Iterator[str]:
    yield part.title
    yield "-" * len(part.title)
    for name, value in part.facts:
        yield f"{name}: {value}"
    for row in part.rows:
        yield ": ".join(row)
