"""Canned replies: texts that staff insert into the reply box."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _


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
        ordering: ClassVar = [Lower("shortcut")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                Lower("shortcut"),
                name="canned_reply_once",
                violation_error_message=_("There is a canned reply with this shortcut already."),
            ),
        ]

    def __str__(self) -> str:
        return self.name
