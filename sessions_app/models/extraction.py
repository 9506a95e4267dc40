"""The work of extracting memories from a turn."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork
from sessions_app.models.turns import Turn


class ExtractionWork(LeasedWork):
    """A request to extract memories from a turn, and its lease.

    A worker owns the work while it holds the lease; ``lease_token`` is new with every claim.

    Once the work is over, ``due`` is false. ``error`` says why it was given up, if it was.
    ``outcome`` holds the result in numbers, never in words that somebody wrote.
    """

    turn = models.OneToOneField(
        Turn,
        verbose_name=_("answer"),
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="extraction",
    )
    due = models.BooleanField(_("due"), default=True)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    not_before = models.DateTimeField(_("not before"), null=True, blank=True)
    done_at = models.DateTimeField(_("done at"), null=True, blank=True)
    outcome = models.CharField(_("outcome"), max_length=255, blank=True)
    error = ErrorField(_("error"), blank=True)

    class Meta:
        verbose_name = _("extraction work")
        verbose_name_plural = _("extraction work")
        indexes: ClassVar = [
            models.Index(fields=["turn"], condition=Q(due=True), name="extractions_due")
        ]

    def __str__(self) -> str:
        return f"learning from turn {self.turn_id}: {'due' if self.due else 'over'}"
