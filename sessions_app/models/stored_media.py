"""The file of a message: fetched from the provider, or attached by staff; kept for a time."""

import uuid

from django.db import models
from django.db.models import SET_NULL, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import known, labelled
from memoryproject.foundation.leases import LeasedWork
from sessions_app.models.messages import Message
from sessions_app.models.turns import Turn


class MediaState(models.TextChoices):
    """``refused``: not kept, ``error_code`` says why; ``removed``: past its retention."""

    PENDING = labelled("pending", _("being fetched"))
    STORED = labelled("stored", _("stored"))
    REFUSED = labelled("refused", _("refused"))
    FAILED = labelled("failed", _("failed"))
    REMOVED = labelled("removed", _("removed"))


class MediaFile(LeasedWork):
    """The file of one message. Its name in the storage is ``media_id``.

    The row outlives its message: without one it is an order to remove the file, and goes once that
    is done; ``receipt_id`` then is the receipt of the forgetting. ``turn`` is set in its place for
    a file that staff send where memory is off: there is no message, and the file is kept until it
    is sent. ``content_type`` is what the bytes are, not what somebody said. ``size``: the bytes
    that it takes in the storage, or is about to take.
    """

    media_id = models.UUIDField(_("media id"), primary_key=True, default=uuid.uuid4, editable=False)
    message = models.OneToOneField(
        Message, SET_NULL, verbose_name=_("message"), null=True, related_name="media_file"
    )
    turn = models.OneToOneField(
        Turn, SET_NULL, verbose_name=_("answer"), null=True, related_name="unstored_file"
    )
    state = models.CharField(
        _("state"), max_length=16, choices=MediaState, default=MediaState.PENDING
    )
    content_type = models.CharField(_("content type"), max_length=128, blank=True)
    size = models.PositiveIntegerField(_("size"), default=0)
    sha256 = models.CharField(_("SHA-256"), max_length=64, blank=True)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    not_before = models.DateTimeField(_("not before"), null=True, blank=True)
    error_code = models.CharField(_("error"), max_length=32, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    receipt_id = models.UUIDField(_("receipt id"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("media file")
        verbose_name_plural = _("media files")
        default_permissions = ()
        constraints = [known("state", MediaState, "media_state_known")]
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(state="pending"), name="media_to_fetch"
            ),
            models.Index(fields=["created_at"], condition=Q(state="stored"), name="media_kept"),
            models.Index(
                fields=["media_id"],
                condition=Q(message__isnull=True, turn__isnull=True),
                name="media_to_remove",
            ),
            models.Index(
                fields=["receipt_id"],
                condition=Q(receipt_id__isnull=False),
                name="media_of_receipt",
            ),
        ]

    def __str__(self) -> str:
        return f"file of message {self.message_id}: {self.state}"
