"""Identify the person of a Green API message: phones, groups, and other forms of addresses."""

from __future__ import annotations

from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.integrations.whatsapp.lenient import first_text, phone_digits, text_of
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    GROUP_DOMAIN,
    PERSON_DOMAINS,
    whatsapp_chat_of_provider,
)


def phone_of(address: str) -> str:
    """Return the phone of ``79…@c.us``, else nothing: other forms hold no phone number."""
    name, _, domain = address.partition("@")
    return phone_digits(name.partition(":")[0]) if domain.lower() in PERSON_DOMAINS else ""


def group_of(address: str) -> str | None:
    """Return the group's id before ``@g.us``, None for a person's chat."""
    name, _, domain = address.partition("@")
    return (name or None) if domain.lower() == GROUP_DOMAIN else None


def person(*addresses: str, name: str = "", phone: Any = None) -> Party:
    """Return a person with one or several addresses; ``phone`` is one given separately."""
    phones = [found for address in addresses if (found := phone_of(address))]
    others = [
        whatsapp_chat_of_provider(address)
        for address in addresses
        if "@" in address and not phone_of(address) and group_of(address) is None
    ]
    return Party(
        phone=next(iter(phones), "") or phone_digits(phone) or None,
        other=next(filter(None, others), None),
        name=name,
    )


def sender_of(sender_data: dict[str, Any]) -> Party:
    """Return the author of an incoming message: in a group the sender, else the chat's person."""
    chat, sender = text_of(sender_data.get("chatId")), text_of(sender_data.get("sender"))
    name = first_text(sender_data, "senderName", "senderContactName")
    phone = sender_data.get("senderPhoneNumber")
    if group_of(chat) is not None:
        return person(sender, name=name, phone=phone)
    chat_name = text_of(sender_data.get("chatName"))
    return person(chat, sender, name=name or chat_name, phone=phone)


def client_of(sender_data: dict[str, Any], own_address: str) -> Party:
    """Return the person that the owner wrote to from the phone; in a group, only ourselves."""
    chat = text_of(sender_data.get("chatId"))
    if group_of(chat) is not None:
        return person(text_of(sender_data.get("sender")) or own_address)
    return person(chat, name=text_of(sender_data.get("chatName")))
