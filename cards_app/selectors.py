"""Queries for cards."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cards_app.models import MemoryCard


def cards_before(*, chat_id: UUID, before: datetime, most: int) -> list[MemoryCard]:
    """Return the cards of the chat's latest sessions that began before ``before``, newest first.

    Sessions without any text are skipped.
    """
    earlier = MemoryCard.objects.filter(chat_id=chat_id, session_started_at__lt=before)
    earlier = earlier.exclude(summary_bullets=[])
    return list(earlier.defer("terms").order_by("-session_started_at", "-pk")[:most])
