"""Map errors of services to responses that several endpoints share."""

from __future__ import annotations

from rest_framework.exceptions import APIException

from memoryproject.foundation.rest_kit.errors import (
    MemoryDisabled,
    conflict,
    invalid,
    not_found,
    unavailable,
)
from sessions_app.conversations.facade import (
    ConversationNotFoundError,
    DataValidationError,
    GenericMemoryError,
    SessionArchivedError,
)


def memory_disabled(error: Exception) -> APIException:
    return MemoryDisabled()


# The first match counts: a narrower error is listed before a wider one.
CHAT_MEMORY = {
    ConversationNotFoundError: not_found,
    SessionArchivedError: conflict,
    DataValidationError: invalid,
    GenericMemoryError: unavailable,
}
