"""Admin pages of the deliveries from the providers."""

import re

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memoryproject.foundation.admin_kit.display import column, shown_json
from memoryproject.foundation.admin_kit.list_filters import choice_filter, value_filter
from memoryproject.foundation.audit.audit_events import staff_record
from memoryproject.foundation.tables import read_table
from sessions_app.conversations.redact_derived import REDACT
from sessions_app.models import DeliveryStatus, InboundDelivery
from sessions_app.models.deliveries import UNPROCESSED
from sessions_app.presentation.audited_view import ConversationAdmin, deliveries_found

_WORDS = read_table(__file__, "delivery_words.yaml")
EVENTS, OUTCOMES = _WORDS["events"], _WORDS["outcomes"]
STATUS = re.compile(r"status (\w+)( of a message that is not here)?")


def outcome_shown(outcome: str) -> str:
    """Return the outcome in the reader's language; as it is stored, if it has no translation."""
    if outcome.startswith(UNPROCESSED):
        return _("not processed: %(error)s") % {"error": outcome.removeprefix(UNPROCESSED)}
    status = STATUS.fullmatch(outcome)
    if status is None:
        return str(OUTCOMES.get(outcome, outcome))
    label = dict(DeliveryStatus.choices).get(status[1], status[1])
    text = _("status of a message that is not here: %(status)s") if status[2] else "%(status)s"
    return text % {"status": label}


# The known kinds of events: a query for them would read the whole table.
EVENT_FILTER = value_filter("event", gettext_lazy("event"), EVENTS.items())
PROCESSED_FILTER = choice_filter(
    "processed",
    gettext_lazy("processed"),
    {
        "no": (
            gettext_lazy("No: an error kept it from being stored"),
            Q(outcome__startswith=UNPROCESSED),
        )
    },
)


@admin.register(InboundDelivery)
class InboundDeliveryAdmin(ConversationAdmin):
    read_as = "delivery"
    list_display = ("received_at", "provider", "shown_event", "shown_outcome", "chat")
    list_filter = (PROCESSED_FILTER, "provider", EVENT_FILTER, "received_at")
    actions = ("process_again",)
    find_rows = staticmethod(deliveries_found)
    search_fields = ("delivery_key",)
    # The newest first; any other order would sort a million rows.
    sortable_by = ()
    list_select_related = ("chat",)
    exclude = ("event", "outcome", "raw", "change")
    readonly_fields = ("shown_event", "shown_outcome", "shown_change", "shown_raw")

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("sessions_app.rerun_turn"))

    @admin.action(
        description=gettext_lazy("Process again (events that failed)"), permissions=["retry"]
    )
    def process_again(self, request: HttpRequest, queryset: QuerySet[InboundDelivery]) -> None:
        """Let the sweep of the next minute take up what failed and is still kept."""
        with transaction.atomic():
            failed = queryset.filter(outcome__startswith=UNPROCESSED, raw__isnull=False)
            keys = list(failed.order_by("id").values_list("pk", flat=True))
            InboundDelivery.objects.filter(pk__in=keys).update(retry_at=timezone.now(), attempts=0)
            for key in keys:
                staff_record(request, "delivery.retry", "delivery", key)
        text = ngettext(
            "%(n)d event is processed again within a minute.",
            "%(n)d events are processed again within a minute.",
            len(keys),
        )
        messages.success(request, text % {"n": len(keys)})

    @admin.display(description=gettext_lazy("event"))
    def shown_event(self, delivery: InboundDelivery) -> str:
        return str(EVENTS.get(delivery.event, delivery.event))

    @admin.display(description=gettext_lazy("outcome"))
    def shown_outcome(self, delivery: InboundDelivery) -> str:
        return outcome_shown(delivery.outcome)

    @admin.display(description=gettext_lazy("change waiting for its message"))
    def shown_change(self, delivery: InboundDelivery) -> str:
        # The texts that a worker has still to redact are gone for everybody.
        is_redaction = delivery.change is not None and REDACT in delivery.change
        return shown_json(None if is_redaction else delivery.change)

    shown_raw = column(gettext_lazy("original event"), lambda delivery: shown_json(delivery.raw))
