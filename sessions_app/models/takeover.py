"""What staff write themselves: chats that they have taken over, canned replies, broadcasts."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import CASCADE, SET_NULL
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from sessions_app.models.chats import Chat
from sessions_app.models.turns import Turn


class PauseCause(models.TextChoices):
    """Why the assistant is paused; see ChatPause.is_sliding."""

    STAFF = labelled("staff", _("staff have paused it"))
    REPLY = labelled("reply", _("staff have replied"))
    OWNER = labelled("owner", _("the business has answered by phone"))
    PERSON = labelled("person", _("the client asks for a person"))


class ChatPause(models.Model):
    """The assistant is paused in this chat: messages are stored and not answered.

    ``until`` None: until staff resume it. A row past its time has no effect; the next sweep
    deletes it.
    """

    chat = models.OneToOneField(
        Chat, CASCADE, verbose_name=_("chat"), primary_key=True, related_name="pause"
    )
    since = models.DateTimeField(_("since"), default=timezone.now)
    until = models.DateTimeField(_("until"), null=True, blank=True)
    cause = models.CharField(
        _("cause"),
        max_length=8,
        choices=PauseCause,
        default=PauseCause.STAFF,
        db_default=PauseCause.STAFF,
    )
    paused_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        SET_NULL,
        "+",
        verbose_name=_("paused by"),
        null=True,
        blank=True,
        help_text=_("Removed with the account."),
    )

    class Meta:
        # The permission is Chat's takeover_chat.
        verbose_name = _("chat pause")
        verbose_name_plural = _("chat pauses")
        default_permissions = ()

    def __str__(self) -> str:
        return f"pause of {self.chat_id}"

    def holds(self, now: datetime) -> bool:
        """Return whether the pause is still in force."""
        return self.until is None or self.until > now

    @property
    def is_sliding(self) -> bool:
        """Return whether it begins anew with each reply by the business."""
        return self.cause != PauseCause.STAFF


# Canned replies: texts that staff insert into the reply box.


class CannedReply(models.Model):
    """A text for replies, shared by all staff; its placeholders are filled from the chat."""

    name = models.CharField(_("name"), max_length=60)
    shortcut = models.CharField(
        _("shortcut"),
        max_length=32,
        help_text=_("Letters, digits, - and _. Typing / and the shortcut in a reply inserts it."),
    )
    text = models.TextField(
        _("text"),
        max_length=4000,
        help_text=_(
            "{name} becomes the client's name, {business} the business's. Words after | stand "
            "where the name isn't known: {name|there}."
        ),
    )

    class Meta:
        verbose_name = _("canned reply")
        verbose_name_plural = _("canned replies")
        ordering = [Lower("shortcut")]
        constraints = [
            models.UniqueConstraint(
                Lower("shortcut"),
                name="canned_reply_once",
                violation_error_message=_("There is a canned reply with this shortcut already."),
            )
        ]

    def __str__(self) -> str:
        return self.name


# Broadcasts: a template that staff send to many chats.


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
        ordering = ["-created_at"]

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
        constraints = [
            models.UniqueConstraint(fields=["broadcast", "chat"], name="broadcast_once_a_chat")
        ]

    def __str__(self) -> str:
        return f"{self.chat_id} of {self.broadcast_id}"
