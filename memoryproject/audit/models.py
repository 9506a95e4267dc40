"""What was done with people's data, by whom and when; never what it said."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone


class AuditEvent(models.Model):
    """One thing that was done. Rows are only ever added.

    ``actor`` names who did it: a staff member's user name, an API token's name, or a person's
    pseudonym. ``content_hash`` is the SHA-256 of the text that it was done to, hex.
    """

    at = models.DateTimeField(default=timezone.now)
    action = models.CharField(max_length=64)
    actor_kind = models.CharField(max_length=16)
    actor = models.CharField(max_length=255, blank=True)
    object_type = models.CharField(max_length=64, blank=True)
    object_id = models.CharField(max_length=255, blank=True)
    content_hash = models.CharField(max_length=64, blank=True)
    details = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.action} {self.object_type} {self.object_id}".strip()
