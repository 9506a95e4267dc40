"""The four categories and the shape of their content. Every field may be left out."""

from __future__ import annotations

from memories_app.memory_document_format.strict_json import ANY, Shape

CONTEXT = "context"
DECISIONS = "decisions"
INTERFACES = "interfaces"
HANDOFFS = "handoffs"
CATEGORIES = (CONTEXT, DECISIONS, INTERFACES, HANDOFFS)

ACCEPTED, SUPERSEDED, DEPRECATED = "accepted", "superseded", "deprecated"
STATUSES = (ACCEPTED, SUPERSEDED, DEPRECATED)

# The status of a handoff that may be completed.
COMPLETE = "100%"

CONTENT: dict[str, Shape] = {
    CONTEXT: {
        "decisions": [str],
        "interfaces": {ANY: {"methods": [str]}},
        "pending": [str],
        "notes": str,
    },
    DECISIONS: {
        "decision": str,
        "rationale": str,
        "alternatives_considered": [str],
        "constraints": [str],
        "status": STATUSES,
    },
    INTERFACES: {
        "module": str,
        "types": {ANY: {ANY: str}},
        "functions": {ANY: {"params": [str], "returns": str}},
        "events": [str],
    },
    HANDOFFS: {
        "task": str,
        "progress": str,
        "completed": [str],
        "pending": [str],
        "blockers": [str],
        "next_steps": [str],
        "context_references": [str],
    },
}
