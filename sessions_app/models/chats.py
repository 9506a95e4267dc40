"""A WhatsApp chat, and the addresses under which its person is known."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models.functions import Reverse
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.text.phone_numbers import number_shown

# Unicode isolates: the text up to POP runs in the direction of its first letter, or from the
# left.
FIRST_STRONG, LEFT_TO_RIGHT, POP = "\u2068", "\u2066", "\u2069"


class Provider(models.TextChoices):
    CLOUD = "cloud", _("WhatsApp Cloud API")
    GREEN = "green", _("Green API")
    CONSOLE = "console", _("Terminal")


class Chat(models.Model):
    """One person or one group. Memory belongs to ``id``, never to a phone number."""

    id = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    whatsapp_chat = models.CharField(
        _("WhatsApp chat"),
        max_length=255,
        unique=True,
        help_text=_("Such as 972501234567@c.us, or …@g.us for a group."),
    )
    provider = models.CharField(
        _("provider"),
        max_length=16,
        choices=Provider.choices,
        help_text=_("Of the chat's last message."),
    )
    number_id = models.CharField(
        _("our number"),
        max_length=64,
        blank=True,
        help_text=_("Our own number or instance at the provider."),
    )
    is_group = models.BooleanField(_("group"), default=False)
    client_name = models.CharField(_("name on WhatsApp"), max_length=255, blank=True)
    # WhatsApp's name changes with what the person calls themselves; this one is kept.
    staff_name = models.CharField(
        _("name given by staff"),
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text=_("Shown to staff instead of the name on WhatsApp."),
    )
    client_phone = models.CharField(
        _("phone"), max_length=32, blank=True, help_text=_("Empty if it is not known.")
    )
    language = models.CharField(
        _("language"),
        max_length=2,
        blank=True,
        help_text=_("Of the chat's last message, such as en."),
    )
    memory_enabled = models.BooleanField(
        _("memory"),
        null=True,
        blank=True,
        default=None,
        help_text=_("Overrides ENABLE_MEMORY_SYSTEM for this chat. Not set: the setting applies."),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("chat")
        verbose_name_plural = _("chats")
        ordering: ClassVar = ["-updated_at"]
        permissions: ClassVar = [
            ("review_chat", "Can label, note, assign and mark conversations as reviewed"),
            ("takeover_chat", "Can pause the assistant and reply by hand"),
            ("merge_chat", "Can merge contacts and split them again"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-updated_at"]),
            # For pages of all chats, in an order that never changes.
            models.Index(fields=["-created_at", "-id"]),
        ]

    def __str__(self) -> str:
        name, number = self.staff_name or self.client_name, self.shown_number
        if not name:
            return number
        if self.is_group:
            return name
        if name.isascii():
            return f"{name} ({number})"
        # Isolate each direction: next to a Hebrew name the number would be split in two.
        return f"{FIRST_STRONG}{name}{POP} ({LEFT_TO_RIGHT}{number}{POP})"

    @property
    def shown_number(self) -> str:
        """Return the number as people write it; the address of a group or of a BSUID as it is."""
        return number_shown(self.whatsapp_chat)

    @property
    def shown_name(self) -> str:
        """Return the name that staff gave, else that of WhatsApp, else the number."""
        return self.staff_name or self.client_name or self.shown_number


class ChatAddress(models.Model):
    """One address of a chat's person at one provider, in ``whatsapp_chat`` form.

    ``left_at``: the time at which the person left it; later messages from it are somebody
    else's. ``origin``: the chat from which staff brought it when they merged two contacts, None
    for the chat's own. Addresses of one origin belong together: who writes from another phone has
    left only the phones of the same origin.
    """

    chat = models.ForeignKey(
        Chat, verbose_name=_("chat"), on_delete=models.CASCADE, related_name="addresses"
    )
    provider = models.CharField(_("provider"), max_length=16, choices=Provider.choices)
    address = models.CharField(_("address"), max_length=255)
    left_at = models.DateTimeField(_("used until"), null=True, blank=True)
    origin = models.UUIDField(_("merged from"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("chat address")
        verbose_name_plural = _("chat addresses")
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["provider", "address"], name="address_once_a_provider")
        ]
        indexes: ClassVar = [
            models.Index(fields=["address"]),
            # For numbers as people write them, which leave out where the address begins.
            models.Index(
                OpClass(Reverse("address"), name="text_pattern_ops"), name="addresses_by_ending"
            ),
        ]

    def __str__(self) -> str:
        return self.shown_number

    @property
    def shown_number(self) -> str:
        return number_shown(self.address)
