"""Enqueue sessions for the workers that make their cards."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memoryproject.foundation.process.jobs import enqueue


def enqueue_cards(session_ids: Sequence[UUID]) -> None:
    """Enqueue these sessions."""
    keys = [str(key) for key in session_ids]
    enqueue("sessions_app.tasks.make_cards", keys, task_name=f"cards of {len(keys)} sessions")
