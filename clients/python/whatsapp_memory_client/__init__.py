"""A client of the memory server for WhatsApp assistants."""

from . import operations
from .async_client import AsyncMemoryClient
from .client import MemoryClient
from .core import (
    APIError,
    AuthenticationFailed,
    Call,
    ChatEvent,
    Conflict,
    ConnectionFailed,
    InvalidRequest,
    MemoryClientError,
    NotFound,
    PermissionDenied,
    Reply,
    RetryPolicy,
    ServerFailed,
    TooManyCalls,
    VersionChanged,
)
from .webhooks import WebhookEvent, WebhookVerificationError, verify_webhook

__all__ = [
    "APIError",
    "AsyncMemoryClient",
    "AuthenticationFailed",
    "Call",
    "ChatEvent",
    "Conflict",
    "ConnectionFailed",
    "InvalidRequest",
    "MemoryClient",
    "MemoryClientError",
    "NotFound",
    "PermissionDenied",
    "Reply",
    "RetryPolicy",
    "ServerFailed",
    "TooManyCalls",
    "VersionChanged",
    "WebhookEvent",
    "WebhookVerificationError",
    "operations",
    "verify_webhook",
]
