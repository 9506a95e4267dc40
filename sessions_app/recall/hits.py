"""Who recalls, and what is returned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

MAX_NEIGHBOUR_LENGTH = 200

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
