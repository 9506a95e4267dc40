"""The settings of the packages behind the API, for settings.py."""

from __future__ import annotations

from typing import Any

from memoryproject import __version__

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "memoryproject.foundation.rest_kit.authentication.TokenAuthentication",
        "memoryproject.foundation.rest_kit.authentication.StaffAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["memoryproject.foundation.rest_kit.authentication.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["memoryproject.foundation.rest_kit.throttles.CallThrottle"],
    "DEFAULT_PARSER_CLASSES": ["memoryproject.foundation.rest_kit.bodies.JsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["memoryproject.foundation.rest_kit.bodies.Json"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": ("memoryproject.foundation.rest_kit.bodies.Negotiation"),
    "DEFAULT_METADATA_CLASS": "memoryproject.foundation.rest_kit.bodies.Forms",
    "DEFAULT_SCHEMA_CLASS": "memoryproject.foundation.rest_kit.schema.Schema",
    "EXCEPTION_HANDLER": "drf_standardized_errors.handler.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
DRF_STANDARDIZED_ERRORS: dict[str, Any] = {
    "EXCEPTION_HANDLER_CLASS": "memoryproject.foundation.rest_kit.handler.OneShape",
    "EXCEPTION_FORMATTER_CLASS": "memoryproject.foundation.rest_kit.handler.Whole",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "WhatsApp memory",
    "DESCRIPTION": (
        "Sessions, messages, memories, cards, transcripts and documents of a memory server for "
        "WhatsApp assistants.\n\n"
        "`Authorization: Bearer …`, made by `manage.py create_api_token NAME`. Times are UTC, with "
        "Z. Lists come in pages: follow `next`, or give `next_cursor` as `cursor`. Errors have one "
        "shape. POSTs that create take `Idempotency-Key`."
    ),
    "VERSION": __version__,
    "LICENSE": {"name": "MIT"},
    "TAGS": [
        {"name": "chat", "description": "One whole turn with the server's own model."},
        {"name": "chats", "description": "People and groups; erasing one with everything."},
        {"name": "sessions", "description": "Conversations: messages, context, cards, summaries."},
        {"name": "turns", "description": "What led to each answer."},
        {"name": "memories", "description": "Facts: stored, changed, recalled, forgotten."},
        {"name": "transcripts", "description": "Texts of conversations, checked and saved."},
        {"name": "documents", "description": "Memory documents by category and name."},
        {"name": "files", "description": "PDF, Word and text files, read into memories."},
        {"name": "receipts", "description": "What was forgotten, and the proof of it."},
        {"name": "audit", "description": "Who did what, in a log that shows any edit."},
        {"name": "me", "description": "What the caller may do."},
    ],
    "DEFAULT_GENERATOR_CLASS": "memoryproject.foundation.rest_kit.schema.Generator",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    # The page's script and style come from drf-spectacular-sidecar, not from another host.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    # The schema states that text fields without allow_blank may not be empty.
    "ENFORCE_NON_BLANK_FIELDS": True,
    # Fields with the same name but different choices.
    "ENUM_NAME_OVERRIDES": {
        "MemoryStatusEnum": "memories_app.models.MemoryStatus",
        "SessionStatusEnum": "sessions_app.models.sessions.SessionStatus",
        "StoredStatusEnum": ["created", "duplicate"],
        "ForgottenKindEnum": "sessions_app.models.ForgottenKind",
        "TurnStateEnum": "sessions_app.models.turns.TurnState",
        "TurnOutcomeEnum": "sessions_app.models.turns.Outcome",
        "ErrorTypeEnum": ["validation_error", "client_error", "server_error"],
        "RecallSourceEnum": ["memories", "messages"],
        "RecalledSourceEnum": ["memory", "message"],
    },
    "PATH_CONVERTER_OVERRIDES": {"id": {"type": "string", "format": "uuid"}},
    "SCHEMA_PATH_PREFIX": r"/api/v1",
}
