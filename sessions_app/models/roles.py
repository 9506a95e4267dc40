"""The role of the sender: the godfather or a client (REQ-ROLE-001).

It is computed from the settings wherever it decides something. The role that stands on a turn only
records by which one it was answered.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.models.chats import Chat

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

    It is godfather only if one of the chat's addresses is exactly one of the configured ids. In
    a group it is always client, for every sender.
    """
    if is_group:
        return CLIENT
    return GODFATHER if any(address in godfather for address in addresses) else CLIENT


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
