"""Scheduled tasks of the API."""

from __future__ import annotations

from memoryproject.foundation.rest_kit.idempotency import answers_drop
from memoryproject.foundation.rest_kit.throttles import counts_drop


def tidy() -> dict[str, int]:
    """Delete stored responses that are older than a day, and call counts of past minutes."""
    return {"answers": answers_drop(), "counts": counts_drop()}
