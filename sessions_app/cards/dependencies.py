"""Enqueue sessions for the workers that make their cards."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django_q.tasks import async_task


def enqueue_cards(session_ids: Sequence[UUID]) -> None:
    """Enqueue these sessions."""
    keys = [str(key) for key in session_ids]
    async_task("sessions_app.tasks.make_cards", keys, task_name=f"cards of {len(keys)} sessions")
