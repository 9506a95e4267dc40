"""The services' errors as answers, where several endpoints share them."""

from __future__ import annotations

from rest_framework.exceptions import APIException

from memoryproject.api.errors import (
    Conflict,
    MemoryDisabled,
    conflict,
    invalid,
    not_found,
    unavailable,
)
from sessions_app.errors import (
    ConversationNotFoundError,
    DataValidationError,
    GenericMemoryError,
    SessionArchivedError,
)
from sessions_app.services.forget.plans import NothingToForgetError
from sessions_app.services.forget.probe import StillFoundError


def memory_disabled(error: Exception) -> APIException:
    return MemoryDisabled()


def still_found(error: Exception) -> APIException:
    return Conflict(f"Nothing was forgotten, everything is as it was: {error} Try again.")


# The first that fits counts: the narrower error stands before the wider one.
CHAT_MEMORY = {
    ConversationNotFoundError: not_found,
    SessionArchivedError: conflict,
    DataValidationError: invalid,
    GenericMemoryError: unavailable,
}
FORGETTING = {NothingToForgetError: not_found, StillFoundError: still_found}
