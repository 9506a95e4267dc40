"""Find or create the chats that a token is bound to."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.rest_kit.tokens import TokenError
from sessions_app.conversations.chat_addresses import chat_for_group, chat_for_party
from sessions_app.models import Chat
from sessions_app.models.chats import Provider


def chat_at_or_new(whatsapp_chat: str) -> Chat:
    """Return the chat of this id, in any spelling; create it if it is new.

    Call it in a transaction. Raises WhatsAppChatError.
    """
    whatsapp_chat = whatsapp_chat_normalise(whatsapp_chat)
    if whatsapp_chat.endswith("@g.us"):
        return chat_for_group(provider=str(Provider.CONSOLE), number_id="", group_id=whatsapp_chat)
    return chat_for_party(
        provider=str(Provider.CONSOLE),
        number_id="",
        party=party_of(whatsapp_chat),
        at=timezone.now(),
    )


def token_chats(whatsapp_chats: Iterable[str]) -> list[UUID]:
    """Return the ids of these chats.

    Creates a new chat, so that a token can exist before the first message. Raises TokenError.
    """
    names = check_chats(whatsapp_chats)
    with transaction.atomic():
        return [chat_at_or_new(name).pk for name in names]


def check_chats(names: Iterable[str]) -> list[str]:
    """Return the stored forms of these ids, each once. Raises TokenError for another text."""
    proper = set()
    for name in names:
        try:
            proper.add(whatsapp_chat_normalise(name))
        except WhatsAppChatError as error:
            text = _("%(name)s is no chat: write it like 15550100123@c.us.")
            raise TokenError(text % {"name": repr(name)}) from error
    return sorted(proper)


# Tell who is behind a chat's address.


def party_of(whatsapp_chat: str) -> Party:
    """Return the party behind an address in ``whatsapp_chat`` form."""
    name, _, domain = whatsapp_chat.partition("@")
    if domain == "c.us" and name.isdigit():
        return Party(phone=name)
    if domain == "bsuid":
        return Party(bsuid=name)
    return Party(other=whatsapp_chat)
