"""Queries for cards."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from cards_app.models import MemoryCard
from memoryproject.foundation.retrieval.query import informative_terms, query_terms


def cards_before(*, chat_id: UUID, before: datetime, most: int) -> list[MemoryCard]:
    """Return the cards of the chat's latest sessions that began before ``before``, newest first.

    Sessions without any text are skipped.
    """
    earlier = MemoryCard.objects.filter(chat_id=chat_id, session_started_at__lt=before)
    earlier = earlier.exclude(summary_bullets=[])
    return list(earlier.defer("terms").order_by("-session_started_at", "-pk")[:most])


def cards_with_words(cards: QuerySet[MemoryCard], text: str) -> QuerySet[MemoryCard]:
    """Return the cards that contain every content word of the text, in any of its forms.

    Return none if the text has no content word.
    """
    terms = informative_terms(query_terms(text))
    if not terms:
        return cards.none()
    for term in terms:
        forms = [form for form, _ in term.alternatives if not form.startswith(("@", "="))]
        cards = cards.filter(terms__overlap=forms)
    return cards
