"""Background jobs as django-q2 leaves them."""

from __future__ import annotations

from django.utils import timezone
from django_q.models import Task


def failed_job(name: str) -> Task:
    """One that can be done again."""
    now = timezone.now()
    return Task.objects.create(
        id="a" * 32,
        name=name,
        func="sessions_app.tasks.make_cards",
        args=([],),
        kwargs={},
        started=now,
        stopped=now,
        success=False,
    )
