"""How a framework's own messages are stored: their text as the server's messages, so that it can be
found and learned from, and the rest of them beside it, in a part that is no text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, cast

from ..models import Message, NewMessageRequest

# Not the server's own summaries.
Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
ROLES: list[Role] = ["user", "assistant", "system", "tool"]
PART = "reasoning"
FIELD = "framework_message"
PLACE = "text_from_to"
MAX_BATCH = 1000


def message_of(role: Role, text: str, raw: Any, **fields: Any) -> NewMessageRequest:
    """A message to store. ``raw`` (JSON) comes back unchanged from ``raw_of``."""
    # What PostgreSQL can't hold as text is in ``raw`` alone.
    text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    rest = json.dumps(_without(raw, text), separators=(",", ":"), default=str)
    parts = [{"type": "text", "text": text}, {"type": PART, FIELD: rest}]
    return cast("NewMessageRequest", {"role": role, "content": parts, **fields})


def raw_of(message: Message) -> Any:
    """What was given for a message; None for one that came by another way, such as WhatsApp."""
    for part in message["content_parts"] or ():
        if FIELD in part:
            try:
                return _with(json.loads(part[FIELD]), message["content"])
            # Something was cut out of it because it was forgotten.
            except ValueError:
                return None
    return None


def batches(messages: Iterable[NewMessageRequest]) -> list[list[NewMessageRequest]]:
    """As many as one call stores."""
    every = list(messages)
    return [every[start : start + MAX_BATCH] for start in range(0, len(every), MAX_BATCH)]


def _without(value: Any, text: str) -> Any:
    """The value with places in the text instead of what stands there: it isn't stored twice."""
    if isinstance(value, str):
        start = text.find(value) if value else -1
        whole = value == text
        return value if start < 0 else {PLACE: None if whole else [start, start + len(value)]}
    if isinstance(value, dict):
        return {name: _without(each, text) for name, each in value.items()}
    return [_without(each, text) for each in value] if isinstance(value, list) else value


def _with(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        if value.keys() == {PLACE}:
            place = value[PLACE]
            return text if place is None else text[place[0] : place[1]]
        return {name: _with(each, text) for name, each in value.items()}
    return [_with(each, text) for each in value] if isinstance(value, list) else value
