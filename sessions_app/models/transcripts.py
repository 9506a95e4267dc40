"""Which batches of transcripts were saved (seed 000)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from sessions_app.models.chats import Chat
from sessions_app.models.sessions import ChatSession


class TranscriptBatch(models.Model):
    """One batch file that was saved into a chat. Its text is in the messages alone.

    ``digest`` is a keyed hash of the file's bytes. ``backup`` names the folder, among the
    backups of transcripts, that its copy is in. While ``cleaned_at`` is null the file may
    still be where it was: the next save then knows that it is stored.
    """

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="transcript_batches")
    session = models.ForeignKey(
        ChatSession, on_delete=models.CASCADE, related_name="transcript_batches"
    )
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    messages = models.PositiveIntegerField(help_text="How many messages it holds.")
    backup = models.CharField(max_length=64)
    saved_at = models.DateTimeField()
    cleaned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "transcript batches"
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
