"""An answer that is made but not stored yet, with its replay record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sessions_app.models.turns import Outcome


@dataclass
class Draft:
    """An answer that is not stored yet.

    ``is_system_text``: the text is one of ours (a confirmation, an apology, a list of what is
    remembered), not a model's: it is not knowledge and never recalled. ``uses_memory``: it may
    hold memories or messages that were stored when it was made. ``shown``: the memories that it
    lists. The other fields go into the turn as they are.
    """

    text: str
    is_system_text: bool = False
    uses_memory: bool = True
    shown: list[UUID] = field(default_factory=list)
    prompt: list[dict[str, Any]] = field(default_factory=list)
    recalled: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, Any] = field(default_factory=dict)
    summary_id: UUID | None = None
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    timings: dict[str, int] = field(default_factory=dict)
    error: str = ""
    outcome: str = Outcome.ANSWERED
