"""The role of the sender: the godfather or a client (REQ-ROLE-001)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

logger = logging.getLogger(__name__)

CLIENT = "client"
GODFATHER = "godfather"


@dataclass(frozen=True)
class Limits:
    """The limit of history in a prompt, in tokens, by role."""

    client: int = 4_000
    godfather: int = 100_000

    def tokens_for(self, user_role: str) -> int:
        return self.godfather if user_role == GODFATHER else self.client


def user_role(
    *, addresses: Collection[str], is_group: bool, whatsapp_chat: str, godfather: Collection[str]
) -> str:
    """Return the role in a chat.

    It is godfather only if one of the chat's addresses is exactly one of the configured ids. In
    a group it is always client, for every sender.
    """
    if not godfather:
        logger.warning(
            "The role of %s cannot be determined, GODFATHER_PHONE is not set: client.",
            whatsapp_chat,
        )
        return CLIENT
    if is_group:
        return CLIENT
    return GODFATHER if any(address in godfather for address in addresses) else CLIENT
