"""What was done with people's data, by whom and when; never what it said."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone


class AuditEvent(models.Model):
    """One thing that was done. Rows are only ever added; the database refuses to change one.

    ``actor`` names who did it: a staff member's user name, an API token's name, or a person's
    pseudonym. ``chat`` is the pseudonym of the chat that it concerns. ``content_hash`` is the
    SHA-256 of the text that it was done to, hex. ``seq`` and ``seal`` come when the row is
    sealed: its place in the chain, without gaps, and the HMAC that binds it to its
    predecessor.
    """

    at = models.DateTimeField(default=timezone.now)
    action = models.CharField(max_length=64)
    actor_kind = models.CharField(max_length=16)
    actor = models.CharField(max_length=255, blank=True)
    chat = models.CharField(max_length=64, blank=True)
    object_type = models.CharField(max_length=64, blank=True)
    object_id = models.CharField(max_length=255, blank=True)
    content_hash = models.CharField(max_length=64, blank=True)
    details = models.JSONField(default=dict, blank=True)
    seq = models.BigIntegerField(null=True, blank=True, unique=True, editable=False)
    seal = models.CharField(max_length=64, blank=True, editable=False)

    class Meta:
        verbose_name = "event"
        ordering: ClassVar = ["-id"]
        permissions: ClassVar = [("export_auditevent", "Can export the audit log")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(seq__isnull=True, seal="") | Q(seq__gte=1) & ~Q(seal=""),
                name="audit_sealed_or_not",
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["id"], condition=Q(seq__isnull=True), name="audit_waiting"),
            models.Index(fields=["action", "-id"]),
            models.Index(fields=["object_id", "-id"]),
            models.Index(fields=["actor", "-id"]),
            models.Index(fields=["object_type", "-id"]),
            models.Index(fields=["at"]),
            models.Index(fields=["chat", "-id"], condition=~Q(chat=""), name="audit_by_chat"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.object_type} {self.object_id}".strip()


class AuditPerson(models.Model):
    """The salt of a chat's pseudonym. Without this row nobody can tell whose it was.

    ``merged``: a pseudonym that the chat had before it turned out to be another one's; new
    events don't get it, but they are found by it.
    """

    chat_id = models.UUIDField()
    salt = models.CharField(max_length=64)
    merged = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "audit people"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["chat_id"], condition=Q(merged=False), name="one_pseudonym_a_chat"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["chat_id"])]

    def __str__(self) -> str:
        return str(self.chat_id)


class AuditHead(models.Model):
    """Where the chain ends: one row, signed."""

    seq = models.BigIntegerField()
    seal = models.CharField(max_length=64)
    mac = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=Q(id=1), name="one_audit_head")]

    def __str__(self) -> str:
        return f"event {self.seq}"


class AuditCheckpoint(models.Model):
    """Up to where the chain was pruned, signed. ``events`` were deleted with it; the row after
    it goes on from ``seal``. Checkpoints are a chain of their own."""

    number = models.BigIntegerField(unique=True)
    seq = models.BigIntegerField()
    seal = models.CharField(max_length=64)
    events = models.BigIntegerField()
    at = models.DateTimeField()
    mac = models.CharField(max_length=64)

    class Meta:
        ordering: ClassVar = ["number"]

    def __str__(self) -> str:
        return f"up to event {self.seq}"


class AuditSetting(models.Model):
    """A setting as it was when the server last started: a keyed fingerprint of its value."""

    name = models.CharField(max_length=64, primary_key=True)
    fingerprint = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.name


class AuditSealJob(models.Model):
    """That a job which seals is in the queue: one row, or none."""

    asked_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=Q(id=1), name="one_seal_job")]

    def __str__(self) -> str:
        return "sealing is asked for"


class AuditVerification(models.Model):
    """One verification of the log that was asked for, and what it found.

    Whoever may write to the database can write a row here, too: the seals are the proof, this is
    a note of when they were last looked at.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    asked_at = models.DateTimeField(default=timezone.now)
    asked_by = models.CharField(max_length=255, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    # When it was last heard of.
    touched_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    checked = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    report = models.JSONField(null=True, blank=True)

    class Meta:
        default_permissions = ()
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return f"{self.asked_at:%Y-%m-%d %H:%M} {self.state}"
