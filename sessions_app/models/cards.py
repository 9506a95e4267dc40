"""The work of making the cards of sessions."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from sessions_app.models.sessions import ChatSession


class CardWork(models.Model):
    """A request to make a session's card, or to make it again.

    ``token`` is new with every change to the session: a worker that made a card from the older
    state doesn't store it. ``due_at`` moves on with every failed attempt.
    """

    session = models.OneToOneField(
        ChatSession,
        verbose_name=_("session"),
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="card_work",
    )
    token = models.UUIDField(_("token"), default=uuid.uuid4)
    due_at = models.DateTimeField(_("due at"))
    attempts = models.PositiveIntegerField(_("attempts"), default=0)

    class Meta:
        verbose_name = _("card work")
        verbose_name_plural = _("card work")
        indexes: ClassVar = [models.Index(fields=["due_at"], name="cards_due")]

    def __str__(self) -> str:
        return f"card of {self.session_id}"
