"""The four categories and the shape of their content. Every field may be left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memories_app.memory_document_format.strict_json import (
    Check,
    fields,
    list_of,
    object_of,
    one_of,
    text,
)

CONTEXT = "context"
DECISIONS = "decisions"
INTERFACES = "interfaces"
HANDOFFS = "handoffs"
CATEGORIES = (CONTEXT, DECISIONS, INTERFACES, HANDOFFS)

ACCEPTED, SUPERSEDED, DEPRECATED = "accepted", "superseded", "deprecated"
STATUSES = (ACCEPTED, SUPERSEDED, DEPRECATED)

# The status of a handoff that may be completed.
COMPLETE = "100%"

_TEXTS = list_of(text)
_PERCENT = re.compile(r"(\d{1,3})\s?%", re.ASCII)

CONTENT: dict[str, Check] = {
    CONTEXT: fields(
        {
            "decisions": _TEXTS,
            "interfaces": object_of(fields({"methods": _TEXTS})),
            "pending": _TEXTS,
            "notes": text,
        }
    ),
    DECISIONS: fields(
        {
            "decision": text,
            "rationale": text,
            "alternatives_considered": _TEXTS,
            "constraints": _TEXTS,
            "status": one_of(*STATUSES),
        }
    ),
    INTERFACES: fields(
        {
            "module": text,
            "types": object_of(object_of(text)),
            "functions": object_of(fields({"params": _TEXTS, "returns": text})),
            "events": _TEXTS,
        }
    ),
    HANDOFFS: fields(
        {
            "task": text,
            "progress": text,
            "completed": _TEXTS,
            "pending": _TEXTS,
            "blockers": _TEXTS,
            "next_steps": _TEXTS,
            "context_references": _TEXTS,
        }
    ),
}


def status_of(category: str, content: Mapping[str, Any]) -> str:
    """Return the status as a word for lists: a decision's status, a handoff's percentage."""
    if category == DECISIONS:
        return str(content.get("status", ""))
    if category == HANDOFFS:
        percent = _percent(content)
        return "" if percent is None else f"{percent}%"
    return ""


def is_completed(category: str, content: Mapping[str, Any]) -> bool:
    """Return whether a handoff is done: progress is 100%, nothing is pending, nothing blocks."""
    return (
        category == HANDOFFS
        and status_of(category, content) == COMPLETE
        and not content.get("pending")
        and not content.get("blockers")
    )


def _percent(content: Mapping[str, Any]) -> int | None:
    found = _PERCENT.fullmatch(str(content.get("progress", "")).strip())
    return int(found[1]) if found else None
