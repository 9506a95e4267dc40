"""Events that a provider delivered, and messages that we handed to a provider."""

import uuid
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import CASCADE, SET_NULL, Q
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import known, labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from sessions_app.models.chats import Chat, Provider
from sessions_app.models.messages import DeliveryStatus, Message, token_index
from sessions_app.models.turns import Turn

# The outcome of an event that could not be processed begins so.
UNPROCESSED = "not processed: "


@dataclass(frozen=True)
class EventResult:
    """What an event led to, as its delivery stores it; ``text`` in words for staff.

    ``answer_due``: a turn waits now in the chat. ``subject_id``: the id under which the message is
    stored, if the event names it by another one. ``change`` is the event itself, to be applied when
    its message arrives, or the texts that a worker has still to redact. ``is_kept`` is false where
    nothing of what the event says may be stored.
    """

    text: str
    chat: Chat | None = None
    message_id: UUID | None = None
    answer_due: bool = False
    subject_id: str = ""
    change: dict[str, Any] | None = None
    is_kept: bool = True


class InboundDelivery(models.Model):
    """One event of a webhook.

    ``delivery_key`` is the same for every retry: it deduplicates, and proves that nothing is
    lost. ``raw`` is deleted after RAW_RETENTION_DAYS. The table is partitioned by the month of
    ``received_at`` (`sessions_app/partitions.py`); a trigger leaves out a delivery whose key is
    there, in whatever month. An event that could not be processed is tried again at ``retry_at``.
    """

    provider = models.CharField(_("provider"), max_length=16, choices=Provider)
    delivery_key = models.CharField(_("delivery key"), max_length=512)
    event = models.CharField(_("event"), max_length=32, help_text=_("The kind of event."))
    subject_id = models.CharField(
        _("subject id"),
        max_length=255,
        blank=True,
        help_text=_("The provider's id of the message that a status, edit, … is about."),
    )
    outcome = models.CharField(
        _("outcome"), max_length=255, blank=True, help_text=_("How it was processed.")
    )
    chat = models.ForeignKey(
        Chat, SET_NULL, "deliveries", verbose_name=_("chat"), null=True, blank=True
    )
    message = models.ForeignKey(
        Message, SET_NULL, "deliveries", verbose_name=_("message"), null=True, blank=True
    )
    change = models.JSONField(
        _("change"),
        null=True,
        blank=True,
        help_text=_("An edit, revocation or reaction that came before its message, until it does."),
    )
    raw = models.JSONField(_("original event"), null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(
        _("attempts"), default=0, help_text=_("Number of retries.")
    )
    retry_at = models.DateTimeField(
        _("retry at"),
        null=True,
        blank=True,
        help_text=_("When an event that could not be processed is tried again."),
    )
    received_at = models.DateTimeField(_("received at"), auto_now_add=True)

    class Meta:
        verbose_name = _("inbound delivery")
        verbose_name_plural = _("inbound deliveries")
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["subject_id"], condition=~Q(subject_id=""), name="deliveries_by_subject"
            ),
            token_index("subject_id", "deliveries_by_token"),
            models.Index(
                fields=["received_at"], condition=Q(raw__isnull=False), name="deliveries_with_raw"
            ),
            models.Index(
                fields=["retry_at"], condition=Q(retry_at__isnull=False), name="deliveries_to_retry"
            ),
            models.Index(
                fields=["-id"],
                condition=Q(outcome__startswith=UNPROCESSED),
                name="deliveries_unprocessed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.event}"


class PartState(models.TextChoices):
    WAITING = labelled("waiting", _("Waiting"))
    SENDING = labelled("sending", _("Sending"))
    SENT = labelled("sent", _("Sent"))
    UNCONFIRMED = labelled("unconfirmed", _("Unconfirmed"))
    FAILED = labelled("failed", _("Failed"))


class OutboundPart(models.Model):
    """One provider message of an answer; a long answer has several, by ``number``.

    ``sending`` is committed before the HTTP call. A part in this state after a crash may have
    been sent and is never retried automatically. ``content`` is emptied once it is sent.
    """

    id = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    turn = models.ForeignKey(Turn, CASCADE, "parts", verbose_name=_("answer"))
    number = models.PositiveIntegerField(_("number"))
    content = models.TextField(_("content"), blank=True)
    state = models.CharField(
        _("state"), max_length=16, choices=PartState, default=PartState.WAITING
    )
    provider = models.CharField(_("provider"), max_length=16, choices=Provider)
    number_id = models.CharField(_("our number"), max_length=64, blank=True)
    provider_message_id = models.CharField(  # noqa: DJ001 null is outside the constraint
        _("provider message id"), max_length=255, null=True, blank=True
    )
    delivery_status = models.CharField(
        _("delivery status"), max_length=16, choices=DeliveryStatus, blank=True, default=""
    )
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    error = ErrorField(_("error"), blank=True)

    class Meta:
        verbose_name = _("outbound part")
        verbose_name_plural = _("outbound parts")
        ordering = ["turn", "number"]
        constraints = [
            models.UniqueConstraint(fields=["turn", "number"], name="part_number_once_a_turn"),
            models.UniqueConstraint(
                fields=["provider", "number_id", "provider_message_id"],
                condition=Q(provider_message_id__isnull=False),
                name="sent_part_once",
            ),
            known("state", PartState, "part_state_known"),
        ]
        indexes = [token_index("provider_message_id", "parts_by_token")]

    def __str__(self) -> str:
        values = {"number": self.number, "answer": self.turn_id}
        return str(_("part %(number)d of answer %(answer)d")) % values
