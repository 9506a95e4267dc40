"""Long-term memories, their vectors, and the documents that some of them were cut from."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Func, Q
from django.db.models.lookups import GreaterThan
from django.utils import timezone
from pgvector.django import VectorField


class Visibility(models.TextChoices):
    """Who a memory is recalled for."""

    OWNER = "owner", "owner: only in the godfather's chats"
    CHAT = "chat", "chat: only in the chat that it came from"
    PUBLIC = "public", "public: for everyone"


class DocumentState(models.TextChoices):
    """received → extracting → ready, or failed for good."""

    RECEIVED = "received"
    EXTRACTING = "extracting"
    READY = "ready"
    FAILED = "failed"


class SourceDocument(models.Model):
    """A file that was read; its text is its memories. The file itself is kept only until
    then. ``chat_id`` and ``visibility`` are those of its memories.

    A worker owns it while it holds the lease, whose token is new with every claim.
    """

    document_id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=255)
    title = models.CharField(max_length=255, blank=True)
    media_type = models.CharField(max_length=128, blank=True)
    size = models.PositiveBigIntegerField(help_text="In bytes.")
    sha256 = models.CharField(max_length=64, help_text="Of the file, hex.")
    pages = models.PositiveIntegerField(null=True, blank=True)
    characters = models.PositiveIntegerField(default=0)
    chat_id = models.UUIDField(null=True, blank=True)
    visibility = models.CharField(max_length=16, choices=Visibility.choices)
    source_message_id = models.UUIDField(null=True, blank=True)
    state = models.CharField(
        max_length=16, choices=DocumentState.choices, default=DocumentState.RECEIVED
    )
    error = models.TextField(blank=True)
    error_code = models.CharField(max_length=32, blank=True)
    warnings = models.JSONField(default=list, blank=True)
    uploaded_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveIntegerField(default=0)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_owner = models.CharField(max_length=255, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "document"
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            # The same file again, in the same scope, is the same document.
            models.UniqueConstraint(
                fields=["sha256", "chat_id", "visibility"],
                nulls_distinct=False,
                name="document_once_a_scope",
            ),
            models.CheckConstraint(
                condition=Q(visibility__in=Visibility.values), name="document_visibility_known"
            ),
            models.CheckConstraint(
                condition=~Q(visibility=Visibility.CHAT) | Q(chat_id__isnull=False),
                name="chat_document_has_its_chat",
            ),
            models.CheckConstraint(
                condition=Q(state__in=DocumentState.values), name="document_state_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["created_at"],
                condition=Q(state__in=[DocumentState.RECEIVED, DocumentState.EXTRACTING]),
                name="documents_waiting",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Memory(models.Model):
    """Something that was told. ``chat_id`` is its scope, the chat's id as a plain column:
    this app knows no chats."""

    memory_id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    content = models.TextField()
    content_hash = models.CharField(max_length=64, editable=False, help_text="SHA-256, hex.")
    type = models.CharField(max_length=64, default="fact")
    category = models.CharField(max_length=64, blank=True)
    tags = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    visibility = models.CharField(max_length=16, choices=Visibility.choices)
    chat_id = models.UUIDField(null=True, blank=True)
    source = models.CharField(max_length=64, blank=True)
    source_message_id = models.UUIDField(null=True, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(auto_now=True)
    terms = ArrayField(models.TextField(), default=list, blank=True, editable=False)
    term_count = models.PositiveIntegerField(default=0, editable=False)
    document = models.ForeignKey(
        SourceDocument,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="memories",
        editable=False,
    )
    position = models.PositiveIntegerField(
        null=True, blank=True, editable=False, help_text="Its place in the document, from 1."
    )

    class Meta:
        verbose_name_plural = "memories"
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(visibility__in=Visibility.values), name="memory_visibility_known"
            ),
            models.CheckConstraint(
                condition=~Q(visibility=Visibility.CHAT) | Q(chat_id__isnull=False),
                name="chat_memory_has_its_chat",
            ),
            # A turn that runs again after a crash must not remember twice.
            models.UniqueConstraint(
                fields=["source_message_id"],
                condition=Q(source="command"),
                name="one_memory_a_command",
            ),
            models.UniqueConstraint(
                fields=["document", "position"],
                condition=Q(document__isnull=False),
                name="passage_once_a_document",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["visibility", "chat_id"]),
            models.Index(fields=["-created_at"]),
            GinIndex(fields=["terms"], name="memory_terms"),
        ]

    def __str__(self) -> str:
        return self.content[:80]


class MemoryEmbedding(models.Model):
    """A memory's vector for one model; two models never mix in one search."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="embeddings")
    model = models.CharField(max_length=128)
    vector = VectorField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["memory", "model"], name="memory_vector_once"),
            # A zero vector has no direction: its distance to any other is not a number.
            models.CheckConstraint(
                condition=GreaterThan(
                    Func("vector", function="vector_norm", output_field=models.FloatField()), 0.0
                ),
                name="memory_vector_not_zero",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} of {self.memory_id}"
