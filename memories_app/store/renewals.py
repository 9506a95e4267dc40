"""Ask staff about memories whose value a newer one seems to renew, by their meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

from django.utils import timezone

from memories_app.models import Memory, MemoryEmbedding, MemoryStatus
from memories_app.search.facade import is_current, nearest_keys
from memories_app.store.propose import replacement_propose
from memoryproject.foundation.integrations.embedders.base import Calibration

# Of a larger batch only so many are compared: each needs a search.
MAX_COMPARED = 20
MIN_PROBABILITY = 0.8


def renewals_propose(
    created: Sequence[tuple[Memory, Sequence[float]]], *, model_id: str, calibration: Calibration
) -> None:
    """Propose the replacement of the memory that is nearest to each new one, where it is near.

    ``created``: memories that say that their value is a new one, with their vectors.
    """
    for memory, vector in created[:MAX_COMPARED]:
        others = Memory.objects.filter(
            is_current(timezone.now()),
            visibility=memory.visibility,
            chat_id=memory.chat_id,
            status=MemoryStatus.ACTIVE,
            document__isnull=True,
            valid_until__isnull=True,
            said_at__lte=memory.said_at,
        ).exclude(pk=memory.pk)
        near = nearest_keys(scope=others, model=model_id, queries=[vector], limit=1, sure=False)
        rows = MemoryEmbedding.objects.filter(model=model_id, memory__in=near)
        for older in rows.select_related("memory"):
            cosine = sum(map(mul, vector, older.vector))
            odds = math.exp(calibration.slope * (cosine - calibration.midpoint))
            if odds / (1 + odds) >= MIN_PROBABILITY:
                replacement_propose(newer=memory, older=older.memory)
