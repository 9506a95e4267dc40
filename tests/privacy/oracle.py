"""Who may see what, in plain words: the rule that the product is held against.

It is written from the design and shares nothing with the product's code, above all no query.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

# The states of a memory in which it counts.
COUNTS = ("active", "pinned", "learned")
SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru")


def mark(number: int) -> str:
    """A word that stands in no other text and is no part of another such word."""
    return "x" + "".join(SYLLABLES[int(digit)] for digit in f"{number:04d}")


@dataclass(frozen=True)
class Viewer:
    """Whoever writes in a chat. ``chat``: the chat; ``writer``: the person's own address.
    ``owner``: the writer's address is one of the godfather's."""

    name: str
    chat: str
    writer: str
    is_group: bool = False
    owner: bool = False

    @property
    def is_godfather(self) -> bool:
        """A group is always client, whoever writes there."""
        return self.owner and not self.is_group


@dataclass(frozen=True)
class Secret:
    """A text with a mark of its own. ``chat``: where it came from or was said, None for what
    staff wrote. A message has no visibility and no state."""

    mark: str
    text: str
    key: UUID
    chat: str | None
    visibility: str = ""
    state: str = "active"

    @property
    def is_message(self) -> bool:
        return not self.visibility


def may_see(viewer: Viewer, secret: Secret) -> bool:
    """Messages stay in their chat. Of memories that count the public ones are for everyone,
    the godfather sees all, and a chat's own are for that chat."""
    if secret.is_message:
        return secret.chat == viewer.chat
    if secret.state not in COUNTS:
        return False
    if secret.visibility == "public" or viewer.is_godfather:
        return True
    return secret.visibility == "chat" and secret.chat == viewer.chat


def belongs_to(viewer: Viewer, secret: Secret) -> bool:
    """Whether it may make a difference to what is shown, and be touched: what may be seen, and
    one's own that doesn't count any more, which /export counts and which counts again when it
    is told again. One's own is what was told in this chat, and what is the owner's."""
    if secret.visibility == "owner" and viewer.is_godfather:
        return True
    own = secret.visibility == "chat" and secret.chat == viewer.chat
    return own or may_see(viewer, secret)
