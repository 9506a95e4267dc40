"""An answer that is made but not stored yet, with its replay record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sessions_app.models.turns import Outcome

# The name in a turn's context.
LISTED = "listed"
# The name, in the record of what was recalled, of a text that is below the threshold.
NEAREST = "nearest"


@dataclass
class Draft:
    """An answer that is not stored yet.

    ``is_system_text``: the text is one of ours (a confirmation, an apology, a list of what is
    remembered), not a model's: it is not knowledge and never recalled. ``uses_memory``: it may
    hold memories or messages that were stored when it was made. ``listed``: the entries of its
    numbered list, each with its memory if it is one. ``is_apology``: there is no answer, and the
    text says so; ``is_outside``: for a cause that has nothing to do with the message. The other
    fields go into the turn as they are.
    """

    text: str
    is_system_text: bool = False
    uses_memory: bool = True
    listed: Mapping[int, UUID | None] = field(default_factory=dict)
    is_apology: bool = False
    is_outside: bool = False
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
