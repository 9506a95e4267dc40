"""Map the errors of forgetting to API responses."""

from __future__ import annotations

from rest_framework.exceptions import APIException

from memoryproject.foundation.rest_kit.errors import Conflict, not_found
from sessions_app.forgetting.deletion_plan import NothingToForgetError
from sessions_app.forgetting.probe import StillFoundError


def still_found(error: Exception) -> APIException:
    return Conflict(f"Nothing was forgotten, everything is as it was: {error} Try again.")


FORGETTING = {NothingToForgetError: not_found, StillFoundError: still_found}
