"""Find chats by name or address."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Reverse

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    PERSON_DOMAIN,
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from sessions_app.models import Chat, ChatAddress

# Fewer digits would find too many numbers.
MIN_DIGITS = 4
# A whole number, at least without its country's code: it is looked for where addresses end.
WHOLE_NUMBER = 7
MAX_WITH_ENDING = 100
_PERSON = f"@{PERSON_DOMAIN}"


def chat_at(whatsapp_chat: str) -> Chat | None:
    """Return the chat of this id, in any spelling: its name, or an address of its person now.

    Older chats may have names that no chat can get any more: they are found by the exact name.
    """
    return next(filter(None, map(_chat_stored_at, stored_names(whatsapp_chat))), None)


def stored_names(whatsapp_chat: str) -> list[str]:
    """Return the names under which a chat with this id may be stored, the proper one first."""
    try:
        proper = whatsapp_chat_normalise(whatsapp_chat)
    except WhatsAppChatError:
        return [whatsapp_chat]
    return list(dict.fromkeys([proper, whatsapp_chat]))


def address_searched(text: str) -> str:
    """Return what a search by parts of addresses looks for: a whole id in its stored form."""
    if "@" not in text:
        return text.lstrip("+") or text
    return stored_names(text)[0]


def number_searched(text: str) -> str:
    """Return the digits of a number as people write it, "" if the text is none.

    They write blanks and dashes, which addresses don't have, and begin local numbers with a zero,
    which the international form leaves out.
    """
    if any(character.isalpha() for character in text):
        return ""
    digits = "".join(filter(str.isdigit, text.replace("(0)", "")))
    international = digits.lstrip("0")
    number = international if len(international) >= MIN_DIGITS else digits
    return number if len(number) >= MIN_DIGITS else ""


def addressed(text: str) -> Q:
    """Return a filter for chats that have, or had, an address with this text or number in it.

    A whole number is found by an index; only if it isn't, all addresses are read.
    """
    chats = _of_whole_number(text)
    return Q(pk__in=chats) if chats else _part_of_address(text)


def called(text: str) -> Q:
    """Return a filter for chats by any part of a name or an address; see ``addressed``."""
    chats = _of_whole_number(text)
    if chats:
        return Q(pk__in=chats)
    named = Q(client_name__icontains=text) | Q(staff_name__icontains=text)
    return named | _part_of_address(text)


def _part_of_address(text: str) -> Q:
    sought, number = address_searched(text), number_searched(text)
    reached = Q(address__icontains=sought)
    found = Q(whatsapp_chat__icontains=sought)
    if number:
        reached |= Q(address__contains=number)
        found |= Q(whatsapp_chat__contains=number) | Q(client_phone__contains=number)
    return found | Q(Exists(ChatAddress.objects.filter(reached, chat=OuterRef("pk"))))


def _of_whole_number(text: str) -> list[UUID]:
    """Return the chats of a whole number, with or without its country's code."""
    number = number_searched(text)
    if len(number) < WHOLE_NUMBER:
        return []
    backwards = ChatAddress.objects.annotate(backwards=Reverse("address"))
    found = backwards.filter(backwards__startswith=f"{number}{_PERSON}"[::-1])
    return list(found.values_list("chat", flat=True)[:MAX_WITH_ENDING])


def _chat_stored_at(whatsapp_chat: str) -> Chat | None:
    chat = Chat.objects.filter(whatsapp_chat=whatsapp_chat).first()
    if chat is not None:
        return chat
    addresses = ChatAddress.objects.filter(address=whatsapp_chat, left_at__isnull=True)
    address = addresses.select_related("chat").first()
    return None if address is None else address.chat


def chat_name(chat_id: UUID) -> str | None:
    """Return the name by which integrators know the chat; None if it is deleted."""
    return Chat.objects.filter(pk=chat_id).values_list("whatsapp_chat", flat=True).first()
