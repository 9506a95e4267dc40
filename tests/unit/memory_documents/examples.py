"""The examples of the format's own description."""

from __future__ import annotations

from typing import Any

from memories_app.memory_document_format.envelope import envelope_read
from memories_app.memory_document_format.strict_json import MemoryDocumentInvalidError, Problem

CONTENTS: dict[str, dict[str, Any]] = {
    "context": {
        "decisions": ["Use JWT for auth", "Store sessions in Redis"],
        "interfaces": {"AuthService": {"methods": ["login", "logout"]}},
        "pending": ["Implement token refresh"],
        "notes": "Working on authentication feature",
    },
    "decisions": {
        "decision": "Use JWT tokens for authentication",
        "rationale": "Stateless, scalable, standard",
        "alternatives_considered": ["Session cookies", "OAuth only"],
        "constraints": ["Must work offline", "Mobile support"],
        "status": "accepted",
    },
    "interfaces": {
        "module": "auth",
        "types": {
            "User": {"id": "string", "email": "string"},
            "AuthResult": {"success": "boolean", "token": "string?"},
        },
        "functions": {
            "login": {"params": ["email", "password"], "returns": "AuthResult"},
            "logout": {"params": ["token"], "returns": "void"},
        },
        "events": ["user.logged_in", "user.logged_out"],
    },
    "handoffs": {
        "task": "Implement user authentication",
        "progress": "70%",
        "completed": ["Login form", "Token generation"],
        "pending": ["Logout", "Session refresh"],
        "blockers": [],
        "next_steps": ["Implement logout endpoint"],
        "context_references": ["2025-11-25-feature-auth"],
    },
}


def document(
    category: str,
    *,
    content: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
    **other: Any,
) -> dict[str, Any]:
    """An envelope with the category's example, or with other content or meta data."""
    return {
        "meta": {
            "created": "2025-11-25T10:30:00Z",
            "category": category,
            "summary": "feature-auth",
            **(meta or {}),
        },
        "content": CONTENTS[category] if content is None else content,
        **other,
    }


def envelope_problems(raw: bytes | str, *, category: str = "") -> list[Problem]:
    """All problems of a document; empty if it is valid."""
    try:
        envelope_read(raw, category=category)
    except MemoryDocumentInvalidError as error:
        return error.problems
    return []
