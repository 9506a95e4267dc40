"""The sources of memories, and their earlier contents."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories_app.models.memories import Memory
from memoryproject.foundation.choices import labelled


class RevisionReason(models.TextChoices):
    UPDATED = labelled("updated", _("Updated"))
    SUPERSEDED = labelled("superseded", _("Superseded"))
    MERGED = labelled("merged", _("Merged"))


class MemorySource(models.Model):
    """A mention of a memory, the first one or a repeated one, with its messages."""

    memory = models.ForeignKey(
        Memory, verbose_name=_("memory"), on_delete=models.CASCADE, related_name="tellings"
    )
    source = models.CharField(_("source"), max_length=64, blank=True)
    source_message_id = models.UUIDField(_("source message id"), null=True, blank=True)
    told_at = models.DateTimeField(_("mentioned on"), default=timezone.now)

    class Meta:
        db_table = "memories_app_memorytelling"
        verbose_name = _("memory mention")
        verbose_name_plural = _("memory mentions")
        ordering: ClassVar = ["told_at", "id"]
        constraints: ClassVar = [
            # A message that is processed again adds no source.
            models.UniqueConstraint(
                fields=["memory", "source", "source_message_id"],
                condition=Q(source_message_id__isnull=False),
                name="memory_told_once_a_message",
            )
        ]
        indexes: ClassVar = [models.Index(fields=["source_message_id"])]

    def __str__(self) -> str:
        return f"{self.source} {self.told_at:%Y-%m-%d %H:%M}".strip()


class MemoryRevision(models.Model):
    """The content of a memory until ``changed_at``, and the actor of the change."""

    memory = models.ForeignKey(
        Memory, verbose_name=_("memory"), on_delete=models.CASCADE, related_name="revisions"
    )
    number = models.PositiveIntegerField(_("number"))
    content = models.TextField(_("content"))
    visibility = models.CharField(_("visibility"), max_length=16)
    type = models.CharField(_("type"), max_length=64)
    category = models.CharField(_("category"), max_length=64, blank=True)
    tags = ArrayField(
        models.CharField(max_length=64), verbose_name=_("tags"), default=list, blank=True
    )
    changed_at = models.DateTimeField(_("changed at"), default=timezone.now)
    changed_by_kind = models.CharField(_("changed by (kind)"), max_length=16)
    changed_by_name = models.CharField(_("changed by"), max_length=255, blank=True)
    reason = models.CharField(_("reason"), max_length=16, choices=RevisionReason.choices)

    class Meta:
        verbose_name = _("memory revision")
        verbose_name_plural = _("memory revisions")
        ordering: ClassVar = ["memory", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["memory", "number"], name="revision_number_once"),
        ]

    def __str__(self) -> str:
        return str(_("revision %(number)d")) % {"number": self.number}


# Tombstones of forgotten facts, which must not be learned again.


class Tombstone(models.Model):
    """A forgotten fact of a scope as a keyed hash.

    The hash recognises the fact when it comes again, but can't reveal it.
    """

    scope = models.CharField(_("scope"), max_length=64)
    key = models.CharField(_("key"), max_length=64)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        verbose_name = _("tombstone")
        verbose_name_plural = _("tombstones")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["scope", "key"], name="tombstone_once_a_scope")
        ]

    def __str__(self) -> str:
        return f"a fact of {self.scope}"
