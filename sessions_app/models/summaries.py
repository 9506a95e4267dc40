"""Summaries of a session's messages, and the work of making them."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CASCADE, SET_NULL, F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import known, labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork
from sessions_app.models.chats import Chat
from sessions_app.models.messages import Message
from sessions_app.models.sessions import ChatSession
from sessions_app.models.turns import Turn


class SummarizationMetadata(models.Model):
    """One summary: the messages that it covers, and the texts that it was made from.

    ``number`` counts a session's summaries from 1. They form a chain without gaps: each begins
    where the one before ended, so that no message is summed up twice. ``digest`` is what its own
    messages say. ``chapter`` is JSON: the most telling sentences of the session up to here, each
    with the order_nums of its messages; the summary message shows them. Before 1.1 it was a text
    made of six digests, or empty; a later release renames it.
    """

    summary_metadata_id = models.UUIDField(
        _("summary id"), primary_key=True, default=uuid.uuid4, editable=False
    )
    session = models.ForeignKey(ChatSession, CASCADE, "summarizations", verbose_name=_("session"))
    number = models.PositiveIntegerField(_("number"))
    summary_message = models.OneToOneField(
        Message, CASCADE, verbose_name=_("summary message"), related_name="summarization"
    )
    summarized_message_ids = ArrayField(
        models.UUIDField(), verbose_name=_("summarized message ids")
    )
    first_order = models.PositiveIntegerField(_("first message"), help_text=_("Its number."))
    last_order = models.PositiveIntegerField(_("last message"), help_text=_("Its number."))
    range_start = models.DateTimeField(
        _("range start"), help_text=_("When the earliest message was written.")
    )
    range_end = models.DateTimeField(
        _("range end"), help_text=_("When the latest message was written.")
    )
    digest = models.TextField(_("digest"), blank=True)
    chapter = models.TextField(_("chapter"), blank=True)
    skill_id = models.CharField(_("skill id"), max_length=64)
    model = models.CharField(_("model"), max_length=128, blank=True)
    is_extractive = models.BooleanField(
        _("excerpts only"),
        default=False,
        help_text=_("Made of the messages' own words, without a chat model."),
    )
    sources_deleted = models.BooleanField(
        _("sources deleted"),
        default=False,
        help_text=_("Its messages were deleted (DELETE_SUMMARIZED_MESSAGES)."),
    )
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        verbose_name = _("summary")
        verbose_name_plural = _("summaries")
        ordering = ["session", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "number"], name="summary_number_once_a_session"
            ),
            models.UniqueConstraint(
                fields=["session", "first_order"], name="messages_summed_up_once"
            ),
            models.CheckConstraint(
                condition=Q(first_order__lte=F("last_order")), name="summary_range_in_order"
            ),
        ]

    def __str__(self) -> str:
        text = str(_("summary %(number)d: messages %(first)d to %(last)d"))
        values = {"first": self.first_order, "last": self.last_order}
        return text % {"number": self.number, **values}


class SummaryWork(LeasedWork):
    """A request to sum up a session's messages, and its lease.

    A worker owns the work while it holds the lease; ``lease_token`` is new with every claim.
    """

    session = models.OneToOneField(
        ChatSession,
        CASCADE,
        verbose_name=_("session"),
        primary_key=True,
        related_name="summary_work",
    )
    due = models.BooleanField(_("due"), default=False)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    not_before = models.DateTimeField(_("not before"), null=True, blank=True)
    error = ErrorField(_("error"), blank=True)

    class Meta:
        verbose_name = _("summary work")
        verbose_name_plural = _("summary work")
        indexes = [models.Index(fields=["session"], condition=Q(due=True), name="summaries_due")]

    def __str__(self) -> str:
        return f"summaries of {self.session_id}: {'due' if self.due else 'none due'}"


# Batches of transcripts that were saved (seed 000).


class TranscriptBatch(models.Model):
    """One batch file that was saved into a chat. Only the messages hold its text.

    ``digest`` is a keyed hash of the file's bytes. ``backup`` names the folder of its copy
    among the backups of transcripts. While ``cleaned_at`` is null the file may still be in its
    original place; the next save then knows that it is stored.
    """

    chat = models.ForeignKey(Chat, CASCADE, "transcript_batches", verbose_name=_("chat"))
    session = models.ForeignKey(
        ChatSession, CASCADE, "transcript_batches", verbose_name=_("session")
    )
    number = models.PositiveIntegerField(_("number"))
    digest = models.CharField(_("digest"), max_length=64)
    messages = models.PositiveIntegerField(_("messages"), help_text=_("Number of messages."))
    backup = models.CharField(_("backup"), max_length=64)
    saved_at = models.DateTimeField(_("saved at"))
    cleaned_at = models.DateTimeField(_("cleaned at"), null=True, blank=True)

    class Meta:
        verbose_name = _("transcript batch")
        verbose_name_plural = _("transcript batches")
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["chat", "number"],
                condition=models.Q(cleaned_at__isnull=True),
                name="transcripts_to_clean_up",
            )
        ]

    def __str__(self) -> str:
        return f"batch {self.number}"


# The work of extracting memories from a turn.


class ExtractionWork(LeasedWork):
    """A request to extract memories from a turn, and its lease.

    A worker owns the work while it holds the lease; ``lease_token`` is new with every claim.

    Once the work is over, ``due`` is false. ``error`` says why it was given up, if it was.
    ``outcome`` holds the result in numbers, never in words that somebody wrote.
    """

    turn = models.OneToOneField(
        Turn, CASCADE, verbose_name=_("answer"), primary_key=True, related_name="extraction"
    )
    due = models.BooleanField(_("due"), default=True)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    not_before = models.DateTimeField(_("not before"), null=True, blank=True)
    done_at = models.DateTimeField(_("done at"), null=True, blank=True)
    outcome = models.CharField(_("outcome"), max_length=255, blank=True)
    error = ErrorField(_("error"), blank=True)

    class Meta:
        verbose_name = _("extraction work")
        verbose_name_plural = _("extraction work")
        indexes = [models.Index(fields=["turn"], condition=Q(due=True), name="extractions_due")]

    def __str__(self) -> str:
        return f"learning from turn {self.turn_id}: {'due' if self.due else 'over'}"


# The file of a message, and where it is kept.


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
