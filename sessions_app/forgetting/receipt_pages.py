"""Show the receipts of forgetting as a list, as a page to read and print, and as plain text."""

from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.display import column, shown_link
from memoryproject.foundation.admin_kit.list_csv import as_download
from memoryproject.foundation.admin_kit.list_filters import (
    Choices,
    choice_filter,
    period_filter,
    value_filter,
)
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.admin_kit.staff_pages import OwnPage
from memoryproject.foundation.text.phone_numbers import number_shown
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.forgetting.choose_pages import FORGET, TEMPLATES, run_address
from sessions_app.forgetting.receipt_document import (
    Document,
    actor_short,
    actor_words,
    as_text,
    probe_words,
    receipt_document,
    times_of,
)
from sessions_app.forgetting.write_receipt import receipts_found
from sessions_app.models import ForgetReceipt
from sessions_app.presentation.links import chat_name_query, contact_address

MAX_STAFF = 100


def _staff_choices(request: HttpRequest) -> Choices:
    """Offer the accounts, and whoever is asked for: the account may be gone."""
    staff = get_user_model()._default_manager.filter(is_staff=True).order_by("username")
    names = [user.get_username() for user in staff[:MAX_STAFF]] + request.GET.getlist("by")
    return {name: (name, Q(actor_kind="staff", actor=name)) for name in names}


STAFF_FILTER = choice_filter("by", gettext_lazy("staff"), _staff_choices)
ACTOR_FILTER = value_filter(
    "who",
    gettext_lazy("by whom"),
    [
        ("staff", gettext_lazy("Staff")),
        ("person", gettext_lazy("The person, by /forget")),
        ("api", gettext_lazy("The API")),
        ("command", gettext_lazy("The command line")),
    ],
    lookup="actor_kind",
)


def _receipts_searched(queryset: QuerySet[ForgetReceipt], term: str) -> QuerySet[ForgetReceipt]:
    """Search by whole ids and numbers only: an index finds them.

    A person's number is kept as a hash alone.
    """
    if not (term := term.strip()):
        return queryset
    if (key := uuid_or_none(term)) is not None:
        return queryset.filter(Q(receipt_id=key) | Q(object_id=key))
    return receipts_found(queryset, term, home_numbers=settings.GODFATHER_PHONE)


@admin.register(ForgetReceipt)
class ForgetReceiptAdmin(ReadOnlyAdmin):
    list_display = ("forgotten_at", "kind", "whose", "rows", "shown_probe", "who", "request_number")
    list_filter = ("kind", period_filter("forgotten_at"), STAFF_FILTER, ACTOR_FILTER)
    find_rows = staticmethod(_receipts_searched)
    search_fields = ("receipt_id",)
    search_help_text = gettext_lazy(
        "The person's number as you write it, a request number, or a whole id: the receipt's or "
        "that of what was erased"
    )
    date_hierarchy = "forgotten_at"
    change_form_template = f"{TEMPLATES}/receipts.html"

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
        may_forget = request.user.has_perm(FORGET)
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
            "run_address": run_address(item.run_id) if item and may_forget else "",
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
    return as_download(HttpResponse(as_text(document), content_type=kind), f"{name}.txt")
