"""The time of the last message of a chat."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from sessions_app.models.chats import Chat


class ChatActivity(models.Model):
    """The time of a chat's last message, or of the chat's creation.

    Summaries don't count for ``last_at``. It is a separate row, so that storing a message
    changes nothing else of its chat, and one index returns the newest of ten thousand chats.
    """

    chat = models.OneToOneField(
        Chat,
        verbose_name=_("chat"),
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="activity",
    )
    last_at = models.DateTimeField(_("last at"))

    class Meta:
        verbose_name = _("chat activity")
        verbose_name_plural = _("chat activities")
        indexes: ClassVar = [models.Index(fields=["-last_at", "-chat"], name="chats_by_activity")]

    def __str__(self) -> str:
        return f"activity of {self.chat_id}"
