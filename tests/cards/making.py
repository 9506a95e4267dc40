"""What the workers do with due cards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from sessions_app.cards.make_cards import cards_make
from sessions_app.conversations.session_lifecycle import cards_sweep


def make_due() -> int:
    """Make all cards that are due, as the sweep finds them; returns how many."""
    made = 0

    def make(session_ids: Sequence[UUID]) -> None:
        nonlocal made
        made += cards_make(session_ids=list(session_ids))

    cards_sweep(enqueue=make, now=timezone.now() + timedelta(minutes=5))
    return made
