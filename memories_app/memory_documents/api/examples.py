"""Data of the schema's examples of documents. All of it is invented."""

from __future__ import annotations

from typing import Any

FOUND: dict[str, Any] = {
    "category": "decisions",
    "identifier": "use-postgres",
    "name": "use-postgres",
    "summary": "use-postgres",
    "created": "2026-01-10T12:00:00Z",
    "changed": "2026-01-10T12:00:00Z",
    "status": "accepted",
    "session_id": "",
    "archived": False,
}
DOCUMENT: dict[str, Any] = {
    "meta": {
        "created": "2026-01-10T12:00:00Z",
        "category": "decisions",
        "summary": "use-postgres",
    },
    "content": {
        "decision": "Use PostgreSQL",
        "rationale": "One database for all of it",
        "status": "accepted",
    },
}
ARCHIVED: dict[str, Any] = {
    "category": "decisions",
    "name": "use-postgres",
    "path": "archive/decisions/use-postgres.json",
    "archived": True,
}
