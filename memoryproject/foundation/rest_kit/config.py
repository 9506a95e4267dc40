"""The settings of the packages behind the API, for settings.py."""

import json
from pathlib import Path
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
    # The title, the description and the tags.
    **json.loads(Path(__file__).with_name("openapi.json").read_text(encoding="utf-8")),
    "VERSION": __version__,
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
        "RoleEnum": "sessions_app.models.messages.Role",
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
