"""Scale vectors to length 1."""

from __future__ import annotations

import math
from collections.abc import Sequence


def unit_vector(vector: Sequence[float]) -> list[float]:
    """Return the vector scaled to length 1; the zero vector stays unchanged."""
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else list(vector)
