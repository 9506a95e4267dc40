"""Takeovers: chats in which staff have paused the assistant."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import CASCADE, SET_NULL
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from sessions_app.models.chats import Chat


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
