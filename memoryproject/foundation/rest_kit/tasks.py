"""Scheduled tasks of the API."""

from memoryproject.foundation.rest_kit.idempotency import answers_drop
from memoryproject.foundation.rest_kit.throttles import counts_drop
from memoryproject.foundation.rest_kit.tokens import granted_drop


def tidy() -> dict[str, int]:
    """Delete stored responses older than a day, call counts of past minutes, and ended grants."""
    return {"answers": answers_drop(), "counts": counts_drop(), "grants": granted_drop()}
