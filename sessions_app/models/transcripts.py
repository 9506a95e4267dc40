"""Batches of transcripts that were saved (seed 000)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork
from sessions_app.models.chats import Chat
from sessions_app.models.sessions import ChatSession
from sessions_app.models.turns import Turn


class TranscriptBatch(models.Model):
    """One batch file that was saved into a chat. Only the messages hold its text.

    ``digest`` is a keyed hash of the file's bytes. ``backup`` names the folder of its copy
    among the backups of transcripts. While ``cleaned_at`` is null the file may still be in its
    original place; the next save then knows that it is stored.
    """

    chat = models.ForeignKey(
        Chat, verbose_name=_("chat"), on_delete=models.CASCADE, related_name="transcript_batches"
    )
    session = models.ForeignKey(
        ChatSession,
        verbose_name=_("session"),
        on_delete=models.CASCADE,
        related_name="transcript_batches",
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
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
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
        Turn,
        verbose_name=_("answer"),
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="extraction",
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
        indexes: ClassVar = [
            models.Index(fields=["turn"], condition=Q(due=True), name="extractions_due")
        ]

    def __str__(self) -> str:
        return f"learning from turn {self.turn_id}: {'due' if self.due else 'over'}"
