"""Find or create the chats that a token is bound to."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.rest_kit.tokens import TokenError
from sessions_app.conversations.chat_addresses import chat_for_group, chat_for_party, party_of
from sessions_app.models import Chat
from sessions_app.models.chats import Provider

MAX_LENGTH = 255


def chat_at_or_new(whatsapp_chat: str) -> Chat:
    """Return the chat of this name or address; create it if it is new.

    Call it in a transaction.
    """
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
    names = sorted(set(whatsapp_chats))
    check_chats(names)
    with transaction.atomic():
        return [chat_at_or_new(name).pk for name in names]


def check_chats(names: Iterable[str]) -> None:
    """Raise TokenError for text that can't be the name of a chat."""
    for name in names:
        if "@" not in name or len(name) > MAX_LENGTH or not name.isprintable() or " " in name:
            text = _("%(name)s is no chat: write it like 15550100123@c.us.")
            raise TokenError(text % {"name": repr(name)})
