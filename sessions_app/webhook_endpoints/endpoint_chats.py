"""The chats to which an endpoint is bound."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from memoryproject.foundation.outgoing_webhooks.endpoints import EndpointError
from memoryproject.foundation.rest_kit.tokens import TokenError
from sessions_app.conversations.facade import check_chats, token_chats


def hook_chats(whatsapp_chats: Iterable[str]) -> list[UUID] | None:
    """Return the ids of these chats; None if none is named.

    New chats are created, as for tokens. Raises EndpointError.
    """
    names = list(whatsapp_chats)
    hook_chats_check(names)
    return token_chats(names) if names else None


def hook_chats_check(whatsapp_chats: Iterable[str]) -> None:
    """Check the names of chats. Raises EndpointError for an invalid one."""
    try:
        check_chats(whatsapp_chats)
    except TokenError as error:
        raise EndpointError(str(error), "chats") from error
