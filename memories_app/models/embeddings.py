"""Embedding models, and the vectors of memories."""

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Func, Q
from django.db.models.lookups import GreaterThan
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from memories_app.models.memories import Memory
from memoryproject.foundation.choices import labelled
from memoryproject.foundation.integrations.embedders.base import Calibration


class EmbeddingState(models.TextChoices):
    """The state of an embedding model.

    ``cleared_at`` shows whether the vectors of a retired model are deleted.
    """

    BUILDING = labelled("building", _("building: its vectors are being made"))
    ACTIVE = labelled("active", _("active: recall uses it"))
    RETIRED = labelled("retired", _("retired: another one took its place"))


class EmbeddingModel(models.Model):
    """An embedding model that made vectors here. Recall uses only the active one.

    ``kind`` and ``name`` are the values of EMBEDDER and EMBEDDING_MODEL when it was recorded. They
    make it possible to build the embedder again when the settings name another one.
    """

    model_id = models.CharField(_("model id"), max_length=128, unique=True)
    kind = models.CharField(_("kind"), max_length=16)
    name = models.CharField(_("name"), max_length=1024, blank=True)
    dimensions = models.PositiveIntegerField(_("dimensions"))
    distance = models.CharField(_("distance"), max_length=16, default="cosine")
    calibration_midpoint = models.FloatField(
        _("calibration midpoint"),
        validators=[MinValueValidator(-1.0), MaxValueValidator(1.0)],
        help_text=_(
            "The cosine at which two texts are as likely to be about the same thing as not."
        ),
    )
    calibration_slope = models.FloatField(
        _("calibration slope"),
        validators=[MinValueValidator(0.1)],
        help_text=_("How steeply that likelihood rises around the midpoint; above 0."),
    )
    state = models.CharField(_("state"), max_length=16, choices=EmbeddingState.choices)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    activated_at = models.DateTimeField(_("activated at"), null=True, blank=True)
    retired_at = models.DateTimeField(_("retired at"), null=True, blank=True)
    cleared_at = models.DateTimeField(_("cleared at"), null=True, blank=True)

    class Meta:
        verbose_name = _("embedding model")
        verbose_name_plural = _("embedding models")
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=EmbeddingState.values), name="embedding_state_known"
            ),
            models.UniqueConstraint(
                fields=["state"],
                condition=Q(state=EmbeddingState.ACTIVE),
                name="one_active_embedding_model",
            ),
            models.UniqueConstraint(
                fields=["state"],
                condition=Q(state=EmbeddingState.BUILDING),
                name="one_embedding_model_in_the_making",
            ),
            models.CheckConstraint(
                condition=Q(distance="cosine", dimensions__gte=1), name="embedding_is_a_cosine"
            ),
            models.CheckConstraint(
                condition=Q(
                    calibration_slope__gt=0,
                    calibration_midpoint__gte=-1,
                    calibration_midpoint__lte=1,
                ),
                name="calibration_rises",
            ),
        ]

    def __str__(self) -> str:
        return self.model_id

    @property
    def calibration(self) -> Calibration:
        return Calibration(midpoint=self.calibration_midpoint, slope=self.calibration_slope)


class MemoryEmbedding(models.Model):
    """A memory's vector for one model; one search never mixes two models.

    ``model`` is an EmbeddingModel's model_id. Each model has its own index: see
    embedding_models.vector_index.
    """

    memory = models.ForeignKey(
        Memory, verbose_name=_("memory"), on_delete=models.CASCADE, related_name="embeddings"
    )
    model = models.CharField(_("model"), max_length=128)
    vector = VectorField(_("vector"))

    class Meta:
        verbose_name = _("memory embedding")
        verbose_name_plural = _("memory embeddings")
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
