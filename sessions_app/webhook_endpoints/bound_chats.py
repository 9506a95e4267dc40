"""The chats that an endpoint is to be bound to."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from memoryproject.foundation.outgoing_webhooks.endpoints import EndpointError
from memoryproject.foundation.rest_kit.tokens import TokenError
from sessions_app.conversations.facade import check_chats, token_chats


def hook_chats(whatsapp_chats: Iterable[str]) -> list[UUID] | None:
    """The ids of these chats, made where they are new, as for tokens; None where none is named.
    Raises EndpointError."""
    names = list(whatsapp_chats)
    hook_chats_check(names)
    return token_chats(names) if names else None


def hook_chats_check(whatsapp_chats: Iterable[str]) -> None:
    """Raises EndpointError for what can't be the name of a chat."""
    try:
        check_chats(whatsapp_chats)
    except TokenError as error:
        raise EndpointError(str(error), "chats") from error
