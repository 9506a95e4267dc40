"""The kinds of events, the endpoints that they are sent to, and their deliveries."""

import uuid
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork


class EventType(models.TextChoices):
    """The events that integrators can receive."""

    MEMORY_CREATED = labelled("memory.created", _("a memory is stored"))
    MEMORY_CHANGED = labelled(
        "memory.changed", _("a memory is edited, superseded, pinned, or seen by others")
    )
    MEMORY_FORGOTTEN = labelled("memory.forgotten", _("a memory is gone"))
    MESSAGE_FORGOTTEN = labelled("message.forgotten", _("a message is erased"))
    SESSION_FORGOTTEN = labelled("session.forgotten", _("a session is erased with its messages"))
    DOCUMENT_FORGOTTEN = labelled("document.forgotten", _("a document is erased"))
    CHAT_ERASED = labelled("chat.erased", _("a chat is erased with everything in it"))
    SESSION_EXPIRED = labelled("session.expired", _("a session has ended"))
    CARD_MADE = labelled("card.made", _("the memory card of a session is made, or made again"))
    MESSAGE_RECEIVED = labelled("message.received", _("a person's message arrives"))
    TURN_ANSWERED = labelled("turn.answered", _("a message is answered"))
    TURN_DEGRADED = labelled(
        "turn.degraded", _("a message is answered from memory alone, because no model answered")
    )
    TURN_FAILED = labelled(
        "turn.failed", _("a message could not be answered, or its answer not be sent")
    )
    HANDOVER_REQUESTED = labelled("handover.requested", _("a client needs a person"))
    RULE_MATCHED = labelled("rule.matched", _("a rule of staff tells of a chat"))


EVENT_TYPES = dict(EventType.choices)
# Receivers must erase what these are about, so they are sent even if the chat is erased.
ERASURES = (
    EventType.MEMORY_FORGOTTEN,
    EventType.MESSAGE_FORGOTTEN,
    EventType.SESSION_FORGOTTEN,
    EventType.DOCUMENT_FORGOTTEN,
    EventType.CHAT_ERASED,
)

# Sent on request, regardless of the endpoint's subscriptions.
TEST = "webhook.test"


class WebhookEndpoint(LeasedWork):
    """An integrator's address.

    ``event_types``: the events that it receives; empty: all.
    ``chat_ids``: the chats that it is bound to; None: it isn't bound and receives the events of
        all.

    ``secret`` signs, so it is stored as it is. Until ``old_secret_until`` the previous secret signs
    as well. ``failing_since`` is the first failure after the last success, and ``failures`` is the
    number of failures since then. Until ``paused_until`` nothing is sent. ``asked_at``: a job that
    sends is in the queue. The API names an endpoint by its ``public_id``, which tells no number of
    endpoints.
    """

    public_id = models.UUIDField(
        _("public id"), db_default=RandomUUID(), unique=True, editable=False
    )
    name = models.CharField(_("name"), max_length=100, unique=True, help_text=_("Description."))
    url = models.CharField(max_length=2000, verbose_name=_("URL"))
    event_types = ArrayField(
        models.CharField(max_length=32), verbose_name=_("event types"), default=list, blank=True
    )
    chat_ids = ArrayField(models.UUIDField(), verbose_name=_("chat ids"), null=True, blank=True)
    secret = models.CharField(_("secret"), max_length=128, editable=False)
    old_secret = models.CharField(_("old secret"), max_length=128, blank=True, editable=False)
    old_secret_until = models.DateTimeField(
        _("old secret until"), null=True, blank=True, editable=False
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    disabled_reason = ErrorField(_("disabled reason"), blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    created_by = models.CharField(_("created by"), max_length=255, blank=True, editable=False)
    last_success_at = models.DateTimeField(
        _("last success at"), null=True, blank=True, editable=False
    )
    last_failure_at = models.DateTimeField(
        _("last failure at"), null=True, blank=True, editable=False
    )
    last_error = ErrorField(_("last error"), blank=True, editable=False)
    failing_since = models.DateTimeField(_("failing since"), null=True, blank=True, editable=False)
    failures = models.PositiveIntegerField(_("failures"), default=0, editable=False)
    paused_until = models.DateTimeField(_("paused until"), null=True, blank=True, editable=False)
    asked_at = models.DateTimeField(_("asked at"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(event_types__contained_by=list(EVENT_TYPES)),
                name="hook_event_types_known",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def state(self) -> str:
        """Return unused, works, failing or disabled."""
        if not self.enabled:
            return "disabled"
        if self.failing_since is not None:
            return "failing"
        return "works" if self.last_success_at else "unused"

    def wants(self, event_type: str, chat_id: UUID | None) -> bool:
        """Return whether the endpoint receives this type of event in this chat."""
        if self.event_types and event_type not in self.event_types:
            return False
        return self.chat_ids is None or chat_id in self.chat_ids

    def keys(self, now: datetime) -> list[str]:
        """Return the secrets that sign now, the newest first."""
        old = self.old_secret_until is not None and self.old_secret_until > now
        return [self.secret, self.old_secret] if old else [self.secret]


class DeliveryState(models.TextChoices):
    """The states of a delivery. FAILED: the last attempt failed, or the endpoint is gone."""

    PENDING = labelled("pending", _("Pending"))
    DELIVERED = labelled("delivered", _("Delivered"))
    FAILED = labelled("failed", _("Failed"))


class WebhookDelivery(models.Model):
    """One event for one endpoint, written with the change and sent until it is delivered.

    ``data`` holds ids, times and words of ours, never what a person said and no phone number.
    ``chat_id`` is the chat that the event is about. The chat's name for the receiver is looked up
    when the delivery is sent.
    """

    endpoint = models.ForeignKey(
        WebhookEndpoint,
        verbose_name=_("endpoint"),
        on_delete=models.CASCADE,
        related_name="deliveries",
    )
    event_id = models.UUIDField(
        _("event id"), default=uuid.uuid4, help_text=_("The same for all endpoints.")
    )
    event_type = models.CharField(_("event type"), max_length=32)
    data = models.JSONField(_("data"), default=dict)
    chat_id = models.UUIDField(_("chat id"), null=True, blank=True)
    occurred_at = models.DateTimeField(_("occurred at"))
    state = models.CharField(
        _("state"), max_length=16, choices=DeliveryState.choices, default=DeliveryState.PENDING
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    due_at = models.DateTimeField(_("due at"))
    last_attempt_at = models.DateTimeField(_("last attempt at"), null=True, blank=True)
    last_status = models.PositiveSmallIntegerField(
        _("last status"), null=True, blank=True, help_text=_("The HTTP status of the last answer.")
    )
    error = ErrorField(_("error"), blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=DeliveryState.values), name="hook_state_known"
            ),
            models.UniqueConstraint(
                fields=["endpoint", "event_id"], name="hook_event_once_an_endpoint"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["endpoint", "due_at", "id"],
                condition=Q(state=DeliveryState.PENDING),
                name="hooks_due",
            ),
            models.Index(
                fields=["finished_at"],
                condition=Q(finished_at__isnull=False),
                name="hooks_finished",
            ),
            models.Index(
                fields=["chat_id"], condition=Q(chat_id__isnull=False), name="hooks_of_a_chat"
            ),
            models.Index(fields=["event_id"], name="hooks_by_event"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.message_id}"

    @property
    def message_id(self) -> str:
        """Return the id by which a receiver recognises a delivery that it already has."""
        return webhook_id(self.event_id)


class WebhookEvent(models.Model):
    """The log of events, from which programs catch up; EVENT_LOG_DAYS says how long it is kept.

    It holds what a delivery holds. ``seq`` is the order for readers, given when somebody reads:
    an ``id`` may be committed after a higher one, and a reader would miss it. An event of a chat
    that was erased is emptied; its row stays, as a reader's place in the log.
    """

    seq = models.BigIntegerField(_("number"), null=True, unique=True)
    event_id = models.UUIDField(_("event id"), unique=True)
    event_type = models.CharField(_("event type"), max_length=32)
    data = models.JSONField(_("data"), default=dict)
    chat_id = models.UUIDField(_("chat id"), null=True, db_index=True)
    occurred_at = models.DateTimeField(_("occurred at"), db_index=True)

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        default_permissions = ()
        indexes: ClassVar = [
            models.Index(fields=["id"], condition=Q(seq=None), name="hooks_unnumbered")
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {webhook_id(self.event_id)}"


def webhook_id(event_id: UUID) -> str:
    """Return the id by which receivers know an event."""
    return f"evt_{event_id.hex}"
