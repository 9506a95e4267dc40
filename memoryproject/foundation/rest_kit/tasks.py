"""What workers do for the API by the clock."""

from __future__ import annotations

from memoryproject.foundation.rest_kit.idempotency import answers_drop
from memoryproject.foundation.rest_kit.throttles import counts_drop


def tidy() -> dict[str, int]:
    """Remove answers that are older than a day, and counts of minutes that are over."""
    return {"answers": answers_drop(), "counts": counts_drop()}
