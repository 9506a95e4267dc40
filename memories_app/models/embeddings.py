"""The vectors of memories."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Func
from django.db.models.lookups import GreaterThan
from pgvector.django import VectorField

from memories_app.models.memories import Memory


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
