"""Try the events again that could not be processed when they came."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction

from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from sessions_app.conversations.redact_derived import REDACT
from sessions_app.inbound.receive import process, unprocessed_outcome
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.models import InboundDelivery
from sessions_app.models.deliveries import UNPROCESSED

logger = logging.getLogger(__name__)

# After 1, 2, 4, … 512 minutes: for 17 hours. Then it is left to staff.
MAX_ATTEMPTS = 10
MAX_COUNT = 200
MAX_COUNTED = 1_000


def deliveries_due(now: datetime) -> list[int]:
    """Return the keys of the events to try again now, oldest first, at most ``MAX_COUNT``."""
    due = InboundDelivery.objects.filter(retry_at__lte=now, raw__isnull=False)
    # These were processed, all but their redaction.
    due = due.exclude(change__has_key=REDACT)
    return list(due.order_by("id").values_list("pk", flat=True)[:MAX_COUNT])


def unprocessed_count() -> int:
    """Return the number of events that could not be processed, at most ``MAX_COUNTED``."""
    kept = InboundDelivery.objects.filter(outcome__startswith=UNPROCESSED)
    return kept[:MAX_COUNTED].count()


def delivery_retry(
    *, delivery_id: int, rules: IntakeRules, enqueue: Callable[[UUID], None], now: datetime
) -> bool:
    """Process the event of a delivery, and return whether that succeeded.

    A new failure is noted, and the next retry comes later. Raises OperationalError or
    InterfaceError when the database is out of reach or full; then nothing has changed.
    """

    def after_commit(chat_id: UUID) -> None:
        transaction.on_commit(partial(enqueue, chat_id))

    try:
        with transaction.atomic():
            due = InboundDelivery.objects.select_for_update(skip_locked=True)
            delivery = due.filter(pk=delivery_id, retry_at__isnull=False).first()
            if delivery is None:
                # Another sweep is at it, or was.
                return False
            # One event, or the pieces of one piece of old messages.
            for event in PROVIDERS[delivery.provider].parse(delivery.raw):
                process(event, delivery.pk, rules, after_commit, now)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        logger.exception("Delivery %s could not be processed again.", delivery_id)
        _put_off(delivery_id, error, now)
        return False
    return True


def _put_off(delivery_id: int, error: Exception, now: datetime) -> None:
    with transaction.atomic():
        delivery = InboundDelivery.objects.select_for_update().get(pk=delivery_id)
        delivery.attempts += 1
        delivery.outcome = unprocessed_outcome(error)
        later = now + timedelta(minutes=2**delivery.attempts)
        delivery.retry_at = later if delivery.attempts < MAX_ATTEMPTS else None
        delivery.save(update_fields=["attempts", "outcome", "retry_at"])
