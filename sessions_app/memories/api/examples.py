"""Data of the schema's examples of memories. All of it is invented."""

from __future__ import annotations

from typing import Any

from sessions_app.presentation.examples import AT, CHAT, MEMORY_ID, MESSAGE_ID, SESSION_ID

NEW: dict[str, Any] = {
    "content": "TestCorp pays in 30 days",
    "category": "payments",
    "tags": ["testcorp"],
    "whatsapp_chat": CHAT,
    "metadata": {"invoice": "INV-001"},
}
MEMORY: dict[str, Any] = {
    "memory_id": MEMORY_ID,
    "content": "TestCorp pays in 30 days",
    "type": "fact",
    "category": "payments",
    "tags": ["testcorp"],
    "visibility": "chat",
    "whatsapp_chat": CHAT,
    "source": "api",
    "source_message_id": None,
    "metadata": {"invoice": "INV-001"},
    "confidence": None,
    "status": "active",
    "pinned": False,
    "expires_at": None,
    "said_at": AT,
    "valid_from": None,
    "valid_until": None,
    "told_count": 1,
    "last_told_at": AT,
    "superseded_by": None,
    "superseded_at": None,
    "created_at": AT,
    "updated_at": AT,
}
DONE: dict[str, Any] = {"superseded": [], "merged": [], "not_applied": []}
STORED: dict[str, Any] = {**MEMORY, "outcome": "created", **DONE}
KNOWN: dict[str, Any] = {
    **MEMORY,
    "tags": ["testcorp", "payments"],
    "told_count": 2,
    "outcome": "duplicate",
    **DONE,
    "merged": ["tags"],
}
REVISION: dict[str, Any] = {
    "number": 1,
    "content": "TestCorp pays in 60 days",
    "type": "fact",
    "category": "payments",
    "tags": ["testcorp"],
    "visibility": "chat",
    "changed_at": AT,
    "changed_by_kind": "api",
    "changed_by_name": "my-integration",
    "reason": "updated",
}
ONE: dict[str, Any] = {**MEMORY, "revisions": [REVISION]}
RECALLED: dict[str, Any] = {
    "source": "memory",
    "memory_id": MEMORY_ID,
    "content": "TestCorp pays in 30 days",
    "score": 0.91,
    "similarity": 0.58,
    "created_at": AT,
    "type": "fact",
    "category": "payments",
    "tags": ["testcorp"],
    "visibility": "chat",
    "whatsapp_chat": CHAT,
    "client_name": "Dana",
    "said_by": "Dana",
    "said_at": AT,
    "valid_from": None,
    "valid_until": None,
    "metadata": {"invoice": "INV-001"},
}
SAID: dict[str, Any] = {
    "source": "message",
    "message_id": MESSAGE_ID,
    "session_id": SESSION_ID,
    "order_num": 1,
    "role": "user",
    "content": "When does TestCorp pay?",
    "score": 0.84,
    "similarity": 0.61,
    "created_at": AT,
    "metadata": {},
    "before": None,
    "after": {"role": "assistant", "content": "TestCorp pays in 30 days."},
}
IMPORTED: dict[str, Any] = {
    "created": 2,
    "duplicates": 1,
    "errors": [{"line": 4, "detail": "content: is missing"}],
}
