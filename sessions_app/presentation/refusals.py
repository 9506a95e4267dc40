"""The services' errors as answers, where several endpoints share them."""

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


# The first that fits counts: the narrower error stands before the wider one.
CHAT_MEMORY = {
    ConversationNotFoundError: not_found,
    SessionArchivedError: conflict,
    DataValidationError: invalid,
    GenericMemoryError: unavailable,
}
