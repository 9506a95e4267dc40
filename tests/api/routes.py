"""What each scope may do: every route of the API and each of its methods. Who adds an endpoint
adds its line; tests/api/test_scopes.py fails on one that isn't here."""

from __future__ import annotations

# The name of the route → its methods → the scope that each needs.
SCOPE_OF: dict[str, dict[str, str]] = {
    "api-chat": {"POST": "write"},
    "api-sessions": {"GET": "read", "POST": "write"},
    "api-session": {"GET": "read", "DELETE": "forget"},
    "api-session-reset": {"POST": "write"},
    "api-session-expire": {"POST": "write"},
    "api-session-messages": {"GET": "read", "POST": "write", "DELETE": "forget"},
    "api-session-message": {"GET": "read", "DELETE": "forget"},
    "api-session-context": {"POST": "read"},
    "api-session-exchanges": {"POST": "write"},
    "api-session-summaries": {"GET": "read"},
    "api-session-summary": {"GET": "read"},
    "api-messages-search": {"POST": "read"},
    "api-chats": {"GET": "read"},
    "api-chat-detail": {"GET": "read", "DELETE": "forget"},
    "api-chat-person": {"GET": "read"},
    "api-turn": {"GET": "read"},
    "api-memories": {"GET": "read", "POST": "write", "PATCH": "write"},
    "api-memories-batch": {"POST": "write"},
    "api-memories-recall": {"POST": "read"},
    "api-memories-export": {"GET": "read"},
    "api-memories-import": {"POST": "write"},
    "api-memory": {"GET": "read", "PATCH": "write", "DELETE": "forget"},
    "api-files": {"GET": "read", "POST": "write"},
    "api-file": {"GET": "read", "DELETE": "forget"},
    "api-receipts": {"GET": "read"},
    "api-receipt": {"GET": "read"},
    # Any scope: it asks for nothing that is stored.
    "api-index": {"GET": "any"},
    "api-me": {"GET": "any"},
    "api-audit": {"GET": "audit"},
    "api-audit-verify": {"GET": "audit"},
    "api-session-card": {"GET": "read", "POST": "write"},
    "api-session-transcript": {"GET": "read"},
    "api-transcripts": {"POST": "write"},
    "api-transcripts-check": {"POST": "read"},
    "api-documents": {"GET": "read"},
    "api-documents-cleanup": {"POST": "forget"},
    "api-document": {"GET": "read", "PUT": "write", "DELETE": "forget"},
    "api-document-archive": {"POST": "write"},
}
# Without a token: what they hold is no secret.
PUBLIC = {"api-schema", "api-docs", "api-nowhere"}
# Refused to bound tokens, because they concern all chats.
NOT_FOR_BOUND = {
    "api-memories-import",
    "api-audit",
    "api-audit-verify",
    "api-documents",
    "api-documents-cleanup",
    "api-document",
    "api-document-archive",
}
