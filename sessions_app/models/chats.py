"""A WhatsApp chat, and the addresses under which its person is known."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models import CASCADE, OuterRef
from django.db.models.functions import Reverse
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.whatsapp import registry, whatsapp_chats
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
        _("provider"), max_length=16, choices=Provider, help_text=_("Of the chat's last message.")
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
        help_text=_("The one that the person writes in, such as en."),
    )
    fixed_language = models.CharField(
        _("fixed language"),
        max_length=2,
        blank=True,
        default="",
        db_default="",
        help_text=_("Chosen by staff. Empty: it is learned from what the person writes."),
    )
    memory_enabled = models.BooleanField(
        _("memory"),
        null=True,
        blank=True,
        default=None,
        help_text=_("Overrides ENABLE_MEMORY_SYSTEM for this chat. Not set: the setting applies."),
    )
    owner_pause_minutes = models.PositiveSmallIntegerField(
        _("pause after a reply by the business, in minutes"),
        null=True,
        blank=True,
        help_text=_(
            "For so long the assistant is silent after somebody of the business wrote here. 0: it "
            "isn't. Not set: OWNER_PAUSE_MINUTES applies."
        ),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("chat")
        verbose_name_plural = _("chats")
        ordering = ["-updated_at"]
        permissions = [
            ("review_chat", "Can label, note, assign and mark conversations as reviewed"),
            ("takeover_chat", "Can pause the assistant and reply by hand"),
            ("merge_chat", "Can merge contacts and split them again"),
        ]
        indexes = [
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
    def our_number(self) -> str:
        """Return the id of our number that was last in contact; "" where there is only one."""
        return self.number_id if self.number_id in registry.numbers_if_several() else ""

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

    chat = models.ForeignKey(Chat, CASCADE, "addresses", verbose_name=_("chat"))
    provider = models.CharField(_("provider"), max_length=16, choices=Provider)
    address = models.CharField(_("address"), max_length=255)
    left_at = models.DateTimeField(_("used until"), null=True, blank=True)
    origin = models.UUIDField(_("merged from"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("chat address")
        verbose_name_plural = _("chat addresses")
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "address"], name="address_once_a_provider")
        ]
        indexes = [
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


class OwnAddress(models.Model):
    """A hidden id (…@lid) or number of our own account, by which people mention it in groups."""

    provider = models.CharField(_("provider"), max_length=16, choices=Provider)
    number_id = models.CharField(_("our number"), max_length=64)
    address = models.CharField(_("address"), max_length=255)

    class Meta:
        verbose_name = _("address of our own")
        verbose_name_plural = _("addresses of our own")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "number_id", "address"], name="own_address_once"
            )
        ]

    def __str__(self) -> str:
        return self.address


# The time of the last message of a chat.


class ChatActivity(models.Model):
    """The time of a chat's last message, or of the chat's creation.

    Summaries don't count for ``last_at``. It is a separate row, so that storing a message
    changes nothing else of its chat, and one index returns the newest of ten thousand chats.
    """

    chat = models.OneToOneField(
        Chat, CASCADE, verbose_name=_("chat"), primary_key=True, related_name="activity"
    )
    last_at = models.DateTimeField(_("last at"))

    class Meta:
        verbose_name = _("chat activity")
        verbose_name_plural = _("chat activities")
        indexes = [models.Index(fields=["-last_at", "-chat"], name="chats_by_activity")]

    def __str__(self) -> str:
        return f"activity of {self.chat_id}"


# The role of the sender: the godfather or a client (REQ-ROLE-001).

CLIENT = "client"
GODFATHER = "godfather"


@dataclass(frozen=True)
class Limits:
    """The limit of history in a prompt, in tokens, by role."""

    client: int = 4_000
    godfather: int = 100_000

    def tokens_for(self, user_role: str) -> int:
        return self.godfather if user_role == GODFATHER else self.client


def user_role(*, addresses: Collection[str], is_group: bool, godfather: Collection[str]) -> str:
    """Return the role in a chat.

    It is godfather only if one of the chat's addresses is one of the configured ids, in any form of
    its number. In a group it is always client, for every sender.
    """
    if is_group:
        return CLIENT
    forms = (form for address in addresses for form in whatsapp_chats.address_forms(address))
    return GODFATHER if any(form in godfather for form in forms) else CLIENT


def chat_role(
    chat: Chat, *, godfather: Collection[str], addresses: Collection[str] | None = None
) -> str:
    """Return the role of the person who writes in a chat.

    ``addresses``: the chat's current ones; they are read if they aren't given.
    """
    if not godfather:
        return CLIENT
    if addresses is None:
        current = chat.addresses.filter(left_at__isnull=True)
        addresses = current.values_list("address", flat=True)
    return user_role(addresses=addresses, is_group=chat.is_group, godfather=godfather)


def addresses_now(chat: str) -> ArraySubquery:
    """Return the current addresses of the chat that this field names, which decide its role."""
    current = ChatAddress.objects.filter(chat=OuterRef(chat), left_at__isnull=True)
    return ArraySubquery(current.order_by().values("address"))


# The name in a turn's context.
SPEAKER = "speaker"


@dataclass(frozen=True)
class Speaker:
    """A token or a staff member who writes in a person's place, through the API.

    ``kind`` and ``name``: those of the actor. ``is_bound``: a token that is bound to chats.
    """

    kind: str
    name: str
    is_bound: bool = False

    def as_context(self) -> dict[str, Any]:
        """Return the part of a turn's context from which the functions below read it."""
        return {SPEAKER: asdict(self)}


def actor_in(chat_id: UUID, context: Mapping[str, Any]) -> Actor:
    """Return the actor of what a message causes: its writer, the person or their speaker."""
    speaker = context.get(SPEAKER)
    if speaker is None:
        return Actor("person", chat_id=chat_id)
    return Actor(speaker["kind"], speaker["name"], on_behalf_of=chat_id)


def reading_role(user_role: str, context: Mapping[str, Any]) -> str:
    """Return the role by which memories are read and written for a turn.

    A bound token sees no memories of other chats, also if it writes in the owner's chat.
    """
    return CLIENT if context.get(SPEAKER, {}).get("is_bound") else user_role


# Merges of two contacts by staff, with what it takes to undo them.


class ContactMerge(models.Model):
    """A merge that can be undone: which rows of ``chat`` came from the contact that is gone.

    ``gone_id``: the id of the chat that was moved into ``chat``; undoing the merge brings it back.
    ``gone`` and ``kept``: the columns of both chats, as they were before. ``rows``: the ids of the
    rows that were moved, and what staff had decided about the two. The record goes with its chat,
    or when the merge is undone.
    """

    merge_id = models.UUIDField(_("merge id"), primary_key=True, default=uuid.uuid4, editable=False)
    chat = models.ForeignKey(Chat, CASCADE, "merges", verbose_name=_("chat"))
    gone_id = models.UUIDField(_("merged chat"), unique=True)
    merged_at = models.DateTimeField(_("merged at"))
    merged_by = models.CharField(_("merged by"), max_length=150)
    gone = models.JSONField(_("merged contact before the merge"), default=dict)
    kept = models.JSONField(_("remaining contact before the merge"), default=dict)
    rows = models.JSONField(_("moved records"), default=dict)

    class Meta:
        verbose_name = _("contact merge")
        verbose_name_plural = _("contact merges")
        # The permission is Chat's merge_chat.
        default_permissions = ()
        ordering = ["-merged_at", "merge_id"]

    def __str__(self) -> str:
        return f"{self.gone_id} into {self.chat_id}"
