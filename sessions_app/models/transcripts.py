"""Batches of transcripts that were saved (seed 000)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from sessions_app.models.chats import Chat
from sessions_app.models.sessions import ChatSession


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
