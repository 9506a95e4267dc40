"""Broadcasts: a template that staff send to many chats, and to whom it goes."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import CASCADE, SET_NULL
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from sessions_app.models.chats import Chat
from sessions_app.models.turns import Turn


class BroadcastState(models.TextChoices):
    RUNNING = labelled("running", _("Running"))
    PAUSED = labelled("paused", _("Paused"))
    DONE = labelled("done", _("Done"))
    CANCELLED = labelled("cancelled", _("Cancelled"))


class LeftOut(models.TextChoices):
    """Why a chat of the segment gets no message."""

    STOPPED = labelled("stopped", _("has said stop"))
    BLOCKED = labelled("blocked", _("is blocked"))
    NO_NUMBER = labelled("no_number", _("has no number that takes templates"))
    ON_HOLD = labelled("on_hold", _("is on hold: staff have taken over, or are asked to"))
    NO_NAME = labelled("no_name", _("has no name, which the message needs"))
    REFUSED = labelled("refused", _("the template can't be filled, or was refused here"))


class Broadcast(models.Model):
    """One template for many chats.

    ``parameters``: the values of its slots, with placeholders as in canned replies. ``next_at``:
    from when further messages are made. ``began_at``: since when it runs without a break; what
    failed before isn't counted. ``error``: why it paused by itself.
    """

    broadcast_id = models.UUIDField(_("broadcast id"), primary_key=True, default=uuid.uuid4)
    template = models.CharField(_("template"), max_length=512)
    language = models.CharField(_("language"), max_length=6)
    parameters = models.JSONField(_("values"), default=list)
    state = models.CharField(
        _("state"), max_length=9, choices=BroadcastState, default=BroadcastState.RUNNING
    )
    error = ErrorField(_("error"), blank=True)
    next_at = models.DateTimeField(_("next messages at"), default=timezone.now)
    began_at = models.DateTimeField(_("running since"), default=timezone.now)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    user_name = models.CharField(_("user name"), max_length=150)

    class Meta:
        verbose_name = _("broadcast")
        verbose_name_plural = _("broadcasts")
        # The permission is Chat's takeover_chat.
        default_permissions = ()
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.template} ({self.language})"


class BroadcastRecipient(models.Model):
    """A chat that a broadcast goes to. It waits until it has a turn, or a reason in ``left_out``.

    The turn sends the message, and shows what became of it.
    """

    broadcast = models.ForeignKey(
        Broadcast, CASCADE, verbose_name=_("broadcast"), related_name="recipients"
    )
    chat = models.ForeignKey(Chat, CASCADE, verbose_name=_("chat"), related_name="broadcasts")
    turn = models.OneToOneField(
        Turn, SET_NULL, verbose_name=_("answer"), null=True, related_name="recipient"
    )
    left_out = models.CharField(_("left out"), max_length=16, choices=LeftOut, blank=True)
    made_at = models.DateTimeField(_("made at"), null=True)

    class Meta:
        verbose_name = _("recipient of a broadcast")
        verbose_name_plural = _("recipients of broadcasts")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["broadcast", "chat"], name="broadcast_once_a_chat")
        ]

    def __str__(self) -> str:
        return f"{self.chat_id} of {self.broadcast_id}"
