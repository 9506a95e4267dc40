"""Who recalls, and what is returned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from memoryproject.foundation.text.characters import cut_at_word
from memoryproject.foundation.text.phone_numbers import number_shown

MAX_NEIGHBOUR_LENGTH = 200
# The name in the metadata of a memory that came from another chat than the owner's own.
CLIENT_NAME = "client_name"
# How a prompt introduces a memory, and one with such a name, which follows.
MEMORY = "memory"
CLIENTS_MEMORY = f"{MEMORY} of "
MAX_NAME_LENGTH = 60
# People choose their names: none may pretend to end the label in which it stands.
_MARKS = re.compile(r"[()<>\[\]]")

MEMORIES = "memories"
MESSAGES = "messages"


@dataclass(frozen=True)
class Viewer:
    """The viewer of a recall.

    ``chat_id`` None and role "staff": all memories, no messages.
    """

    user_role: str
    chat_id: UUID | None = None


@dataclass(frozen=True)
class Hit:
    """A recalled text.

    ``similarity`` is the raw cosine, None if the embedder doesn't cover the text. ``score`` is
    the fused relevance in [0, 1]. The metadata of a memory that the owner recalls names the client
    whose it is, as CLIENT_NAME. A message's metadata holds its position and, shortened, the
    messages "before" and "after" it.
    """

    source: str
    id: UUID
    content: str
    score: float
    similarity: float | None
    created_at: datetime
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RecallResult:
    """The hits, best first. ``degraded``: a part of memory could not be searched."""

    hits: list[Hit]
    degraded: bool = False


@dataclass(frozen=True)
class LeftOut:
    """The messages of a chat that were said before a prompt's, and that the prompt doesn't hold.

    They are those of sessions older than ``session_id`` (``later`` are the others), and those of
    this session up to the place ``until``; but not ``first_id``.
    """

    session_id: UUID
    until: int
    first_id: UUID
    later: Sequence[UUID]


def name_in_label(name: str) -> str:
    """Return the name of a chat's person as it stands in the label of a memory."""
    words = " ".join(_MARKS.sub(" ", number_shown(name)).split())
    return cut_at_word(words, MAX_NAME_LENGTH) or "a client"
