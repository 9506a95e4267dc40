"""Build a document from a receipt, or from those of a run: titles, facts and tables.

Pages show it, to read and to print, and it is rendered as plain text.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from django.apps import apps
from django.conf import settings
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from memoryproject.foundation.tables import read_table
from sessions_app.forgetting.probe import ABSENT
from sessions_app.models import ForgetItem, ForgetReceipt, ForgetRun

TIME = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True)
class Part:
    """A heading with facts (name and value) and a table below it."""

    title: str
    facts: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Document:
    title: str
    parts: Sequence[Part]
    notes: Sequence[str]


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
    """Return the table of the probe's steps; empty for a receipt without a record of them."""
    looks = receipt.probe_details
    if not looks:
        return []
    names = sorted({name for look in looks.values() for name in look["looked_at"]})
    rows = [
        (str(LOOKS.get(name, name)), f"{look['queries']} / {look['rows']}")
        for name, look in looks.items()
    ]
    return [
        Part(
            _("What the check searched"),
            facts=[(_("columns, indexes and statistics"), ", ".join(names) or "–")],
            columns=(_("where"), "{} / {}".format(_("queries"), _("rows"))),
            rows=rows,
        )
    ]


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
    lines = [document.title, "=" * len(document.title)]
    for part in document.parts:
        lines += ["", part.title, "-" * len(part.title)]
        lines += [f"{name}: {value}" for name, value in part.facts]
        lines += map(": ".join, part.rows)
    return "\r\n".join([*lines, "", *document.notes, ""])


# Label the tables, the results of the check and the actors.


# WORDS: for models whose own names say too little.
_WORDS = read_table(__file__, "receipt_words.yaml")
WORDS, LEFT, FINISH, LOOKS = (_WORDS[name] for name in ("tables", "left", "finish", "looks"))
FINISH_ROW = gettext_lazy("Open it in the admin and erase it there.")


def table_words(table: str) -> str:
    """Return a table's label."""
    if table in WORDS:
        return str(WORDS[table])
    for model in apps.get_models(include_auto_created=True):
        if model._meta.db_table == table:
            return str(capfirst(model._meta.verbose_name_plural))
    return table


def swept_words(swept: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the labels of the swept tables with their rows, the most important first."""
    places = {table: place for place, table in enumerate(WORDS)}
    tables = sorted(swept, key=lambda table: (places.get(table, len(places)), table))
    return [(table_words(table), swept[table]) for table in tables if swept[table]]


def probe_words(probe: str) -> str:
    """Return the label of the probe's result."""
    if probe == ABSENT:
        return _("Searched afterwards, not found.")
    return _("Searched afterwards: something is still there, see below.")


def row_kind(what: str) -> str:
    """Return the code of a kind of row in the catalogue of errors."""
    return f"kind_{what.replace(' ', '_')}"


def left_words(left: Iterable[Mapping[str, str]]) -> list[tuple[str, str, str]]:
    """Return what is still there, its id, and what staff do about it."""
    return [
        (
            str(LEFT.get(each["what"]) or translate_error(ErrorText(row_kind(each["what"])))),
            each["id"],
            str(FINISH.get(each["what"], FINISH_ROW)),
        )
        for each in left
    ]


def actor_short(kind: str, name: str) -> str:
    """Return the label of an actor for lists: people in it have no pseudonym."""
    return _("the person") if kind == "person" else actor_words(kind, name)


def actor_words(kind: str, name: str) -> str:
    """Return the label of an actor."""
    words = {
        "staff": _("staff: {name}"),
        "api": _("by the API, with the token {name}"),
        "person": _("the person in the chat, under the pseudonym {name}"),
        "command": _("somebody at the server's command line"),
        "system": _("the server by itself"),
    }
    return words.get(kind, "{name}").format(name=name)
