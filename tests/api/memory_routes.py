"""What each scope may do with memories and what is kept beside conversations: method, path,
scope, and whether a token that is bound to chats may call it at all."""

from __future__ import annotations

from dataclasses import dataclass

ANY_ID = "0b0e7c1e-3f5a-4c7e-9d52-5c1b2a9e7f10"


@dataclass(frozen=True)
class MemoryRoute:
    method: str
    path: str
    scope: str
    bound: bool = True

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


ONE = f"memories/{ANY_ID}/"
MEMORY_ROUTES = [
    MemoryRoute("GET", "memories/", "read"),
    MemoryRoute("POST", "memories/", "write"),
    MemoryRoute("POST", "memories/batch/", "write"),
    MemoryRoute("POST", "memories/recall/", "read"),
    MemoryRoute("GET", "memories/export/", "read"),
    MemoryRoute("POST", "memories/import/", "write", bound=False),
    MemoryRoute("GET", ONE, "read"),
    MemoryRoute("PATCH", ONE, "write"),
    MemoryRoute("DELETE", ONE, "forget"),
    MemoryRoute("GET", f"receipts/{ANY_ID}/", "read", bound=False),
]
