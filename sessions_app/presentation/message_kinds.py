"""Icons for messages that aren't text, and ticks for the delivery state of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.admin_kit.display import shown_labelled
from sessions_app.models import Message
from sessions_app.models.messages import DeliveryStatus


@dataclass(frozen=True)
class Kind:
    """A kind of message; ``icon`` is a name of Material Symbols."""

    icon: str
    name: Any


@dataclass(frozen=True)
class Tick:
    """The tick that WhatsApp shows: one, two, or two in colour.

    ``look`` is a CSS class of the page.
    """

    text: str
    look: str
    name: Any


KINDS = {
    "image": Kind("image", _("Picture")),
    "video": Kind("videocam", _("Video")),
    "audio": Kind("music_note", _("Audio")),
    "voice": Kind("mic", _("Voice message")),
    "document": Kind("description", _("Document")),
    "sticker": Kind("emoji_emotions", _("Sticker")),
    "location": Kind("location_on", _("Location")),
    "contacts": Kind("contacts", _("Contact")),
    "interactive": Kind("touch_app", _("Choice")),
    "button": Kind("smart_button", _("Button")),
    "order": Kind("shopping_cart", _("Order")),
    "template": Kind("article", _("Template")),
    "poll": Kind("ballot", _("Poll")),
    "unsupported": Kind("help", _("Something that WhatsApp doesn't hand on")),
}
TICKS = {
    DeliveryStatus.SENT: Tick("✓", "", _("sent")),
    DeliveryStatus.DELIVERED: Tick("✓✓", "", _("delivered")),
    DeliveryStatus.READ: Tick("✓✓", "read", _("read")),
    DeliveryStatus.PLAYED: Tick("✓✓", "read", _("played")),
    DeliveryStatus.FAILED: Tick("!", "failed", _("failed")),
}


def shown_message(message: Message) -> SafeString:
    """Return a message for lists; one that isn't text begins with its kind."""
    kind = kind_of(message.kind)
    return shown_labelled(str(kind.name) if kind else "", message.content)


def kind_of(kind: str) -> Kind | None:
    """Return the kind; None for plain text."""
    if kind == "text":
        return None
    return KINDS.get(kind) or Kind("attach_file", kind)
