"""Show the receipts of forgetting as a list, as a page to read and print, and as plain text."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, ClassVar
from uuid import UUID
from zoneinfo import ZoneInfo

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit import list_csv, list_filters, staff_admin
from memoryproject.foundation.admin_kit.display import column, shown_link
from memoryproject.foundation.admin_kit.staff_pages import OwnPage
from memoryproject.foundation.errors.stored_errors import ErrorText, translate_error
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.phone_numbers import number_shown
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.forgetting import choose_pages, write_receipt
from sessions_app.forgetting.probe import ABSENT
from sessions_app.models import ForgetItem, ForgetReceipt, ForgetRun
from sessions_app.presentation.links import chat_name_query, contact_address

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
        notes=list(map(str, _WORDS["notes"])),
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
        notes=list(map(str, _WORDS["notes"])),
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
    return str(_WORDS["actors"].get(kind, "{name}")).format(name=name)


# Show the receipts of forgetting as a list, as a page to read and print, and as plain text.


MAX_STAFF = 100


def _staff_choices(request: HttpRequest) -> list_filters.Choices:
    """Offer the accounts, and whoever is asked for: the account may be gone."""
    staff = get_user_model()._default_manager.filter(is_staff=True).order_by("username")
    names = [user.get_username() for user in staff[:MAX_STAFF]] + request.GET.getlist("by")
    return {name: (name, Q(actor_kind="staff", actor=name)) for name in names}


STAFF_FILTER = list_filters.choice_filter("by", gettext_lazy("staff"), _staff_choices)
ACTOR_FILTER = list_filters.value_filter(
    "who", gettext_lazy("by whom"), _WORDS["actor_choices"].items(), lookup="actor_kind"
)


def _receipts_searched(queryset: QuerySet[ForgetReceipt], term: str) -> QuerySet[ForgetReceipt]:
    """Search by whole ids and numbers only: an index finds them.

    A person's number is kept as a hash alone.
    """
    if not (term := term.strip()):
        return queryset
    if (key := uuid_or_none(term)) is not None:
        return queryset.filter(Q(receipt_id=key) | Q(object_id=key))
    return write_receipt.receipts_found(queryset, term, home_numbers=settings.GODFATHER_PHONE)


@admin.register(ForgetReceipt)
class ForgetReceiptAdmin(staff_admin.ReadOnlyAdmin):
    list_display = ("forgotten_at", "kind", "whose", "rows", "shown_probe", "who", "request_number")
    list_filter = ("kind", list_filters.period_filter("forgotten_at"), STAFF_FILTER, ACTOR_FILTER)
    find_rows = staticmethod(_receipts_searched)
    search_fields = ("receipt_id",)
    search_help_text = gettext_lazy(
        "The person's number as you write it, a request number, or a whole id: the receipt's or "
        "that of what was erased"
    )
    date_hierarchy = "forgotten_at"
    change_form_template = f"{choose_pages.TEMPLATES}/receipts.html"

    own_pages: ClassVar[Any] = {"text": OwnPage("<uuid:receipt_id>/text/", "text", "GET HEAD")}

    def get_queryset(self, request: HttpRequest) -> QuerySet[ForgetReceipt]:
        return super().get_queryset(request).annotate(chat_name=chat_name_query("chat_id"))

    def get_list_display(self, request: HttpRequest) -> Any:
        shown = super().get_list_display(request)
        if request.user.has_perm("sessions_app.view_chat"):
            return shown
        return [name for name in shown if name != "whose"]

    def render_change_form(self, request: HttpRequest, context: Any, **options: Any) -> Any:
        """Show the receipt's document instead of a form."""
        receipt: ForgetReceipt = options["obj"]
        item = getattr(receipt, "item", None)
        may_forget = request.user.has_perm(choose_pages.FORGET)
        context |= {
            "document": receipt_document(receipt),
            "receipt": receipt,
            "when": times_of(receipt.forgotten_at),
            "who": actor_words(receipt.actor_kind, receipt.actor),
            "check": probe_words(receipt.probe),
            "removed": sum(receipt.swept.values()),
            "text_address": reverse(
                "admin:sessions_app_forgetreceipt_text", args=[receipt.receipt_id]
            ),
            "run_address": choose_pages.run_address(item.run_id) if item and may_forget else "",
        }
        return super().render_change_form(request, context, **options)

    def text(self, request: HttpRequest, receipt_id: UUID) -> HttpResponse:
        """Return the receipt as plain text."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        receipt = get_object_or_404(ForgetReceipt, receipt_id=receipt_id)
        return text_answer(receipt_document(receipt), f"receipt-{receipt_id}")

    @admin.display(description=gettext_lazy("whose"))
    def whose(self, receipt: Any) -> str:
        """Name the person as far as one can still be named."""
        if receipt.chat_name:
            return shown_link(contact_address(receipt.chat_id), number_shown(receipt.chat_name))
        if receipt.chat_id is not None:
            return _("an erased contact")
        return _("the owner") if receipt.person_keys else "–"

    rows = column(gettext_lazy("removed"), lambda receipt: sum(receipt.swept.values()))

    @admin.display(description=gettext_lazy("check"), ordering="probe")
    def shown_probe(self, receipt: ForgetReceipt) -> str:
        return probe_words(receipt.probe)

    @admin.display(description=gettext_lazy("by whom"))
    def who(self, receipt: ForgetReceipt) -> str:
        """Name who erased it, without the pseudonym of a person, which the page has."""
        return format_html("<bdi>{}</bdi>", actor_short(receipt.actor_kind, receipt.actor))


def text_answer(document: Document, name: str) -> HttpResponse:
    kind = "text/plain; charset=utf-8"
    return list_csv.as_download(HttpResponse(as_text(document), content_type=kind), f"{name}.txt")
