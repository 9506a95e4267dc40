"""The work of learning from a turn what the person said in it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from memoryproject.lib.leases import LeasedWork
from sessions_app.models.turns import Turn


class ExtractionWork(LeasedWork):
    """That a turn is to be learned from, and who is at it. A worker owns the work while it
    holds the lease; ``lease_token`` is new with every claim.

    Once it is over, ``due`` is false, and ``error`` says why it was given up, if it was.
    ``outcome`` tells in numbers what came of it, never in words that somebody wrote.
    """

    turn = models.OneToOneField(
        Turn, primary_key=True, on_delete=models.CASCADE, related_name="extraction"
    )
    due = models.BooleanField(default=True)
    attempts = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=255, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "extraction work"
        indexes: ClassVar = [
            models.Index(fields=["turn"], condition=Q(due=True), name="extractions_due")
        ]

    def __str__(self) -> str:
        return f"learning from turn {self.turn_id}: {'due' if self.due else 'over'}"
