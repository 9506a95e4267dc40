"""Tokens, answers that are given again, and counts of calls."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from memoryproject.api.scopes import SCOPES
from memoryproject.lib.leases import LeasedWork


class ApiToken(models.Model):
    """The right to use the API. The secret itself is kept nowhere: ``digest`` is its SHA-256,
    ``prefix`` its beginning, by which people tell tokens apart.

    ``chat_ids``: the chats that it is bound to; None: it is bound to none and reaches all.
    """

    name = models.CharField(max_length=100, help_text="What it is for.")
    prefix = models.CharField(max_length=16, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=16), help_text=", ".join(SCOPES))
    chat_ids = ArrayField(models.UUIDField(), null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.CharField(max_length=255, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="To the minute."
    )

    class Meta:
        verbose_name = "API token"
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(scopes__contained_by=list(SCOPES)) & Q(scopes__len__gt=0),
                name="api_scopes_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


class IdempotentAnswer(LeasedWork):
    """The answer to a call with an Idempotency-Key, to be given again to its twins.

    ``key_hash`` and ``request_hash`` are keyed hashes, since clients put what they like into
    keys. Until ``status`` is there the call is being carried out by the lease's owner.
    ``withheld``: something was forgotten meanwhile or since, so that the answer isn't kept.
    """

    # Longer than any call takes; a dead owner is found out at once on the same machine.
    lease_length = timedelta(minutes=10)

    caller = models.CharField(max_length=64)
    key_hash = models.CharField(max_length=64)
    request_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=timezone.now)
    status = models.PositiveSmallIntegerField(null=True)
    content_type = models.CharField(max_length=64, blank=True)
    headers = models.JSONField(default=dict)
    body = models.TextField(blank=True)
    withheld = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["caller", "key_hash"], name="one_answer_a_key")
        ]
        indexes: ClassVar = [models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return f"{self.caller} {self.status or 'in progress'}"


class CallCount(models.Model):
    """How many calls of a kind somebody made in a minute. The table is unlogged: counting
    costs no write to the disk, and a crash forgets the counts."""

    caller = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    minute = models.BigIntegerField(help_text="Minutes since 1970.")
    calls = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["caller", "kind", "minute"], name="one_count_a_minute")
        ]

    def __str__(self) -> str:
        return f"{self.caller} {self.kind}: {self.calls}"
