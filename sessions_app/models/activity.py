"""When something was last said in a chat."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from sessions_app.models.chats import Chat


class ChatActivity(models.Model):
    """``last_at``: when a chat's last message was stored, or when the chat was made; summaries
    don't count. A row of its own, so that a message that is stored touches nothing else of its
    chat, and the newest of ten thousand chats are read from one index."""

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
