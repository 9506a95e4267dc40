"""Memory documents of programs (context, decisions, interfaces, handoffs) with all versions.

Files that were read into memories are ``SourceDocument``.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories_app.memory_document_format.names import (
    CATEGORIES,
    CONTEXT,
    DECISIONS,
    HANDOFFS,
    INTERFACES,
)


class MemoryDocument(models.Model):
    """A document's place, and the fields of its newest version for lists and their order.

    The text itself is in the versions.
    """

    id = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    category = models.CharField(
        verbose_name=_("category"),
        max_length=16,
        choices=[
            (CONTEXT, _("context")),
            (DECISIONS, _("decisions")),
            (INTERFACES, _("interfaces")),
            (HANDOFFS, _("handoffs")),
        ],
    )
    name = models.CharField(
        verbose_name=_("name"), max_length=255, help_text=_("The file's name without .json.")
    )
    identifier = models.CharField(
        _("identifier"), max_length=255, help_text=_("The name without its date.")
    )
    summary = models.TextField(verbose_name=_("summary"))
    session_id = models.TextField(verbose_name=_("session"), blank=True)
    status = models.CharField(
        _("status"),
        max_length=16,
        blank=True,
        help_text=_("A decision's status, or a handoff's percentage."),
    )
    created = models.DateTimeField(verbose_name=_("created"), help_text=_("As the document says."))
    changed = models.DateTimeField(
        verbose_name=_("changed"), help_text=_("When it was last saved, as the document says.")
    )
    version = models.PositiveIntegerField(
        verbose_name=_("version"), default=1, help_text=_("Number of the newest version.")
    )
    archived_at = models.DateTimeField(verbose_name=_("archived"), null=True, blank=True)

    class Meta:
        verbose_name = _("memory document")
        verbose_name_plural = _("memory documents")
        ordering: ClassVar = ["category", "name"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(category__in=CATEGORIES), name="memory_document_category_known"
            ),
            models.UniqueConstraint(
                fields=["category", "name"],
                condition=Q(archived_at__isnull=True),
                name="memory_document_name_once",
            ),
            models.UniqueConstraint(
                fields=["category", "name"],
                condition=Q(archived_at__isnull=False),
                name="memory_document_name_once_in_the_archive",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["category", "identifier"], name="memory_document_identifier"),
            models.Index(
                fields=["category", "changed"],
                condition=Q(archived_at__isnull=True),
                name="memory_document_changed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.category}/{self.name}"


class MemoryDocumentVersion(models.Model):
    """A document's whole text, byte for byte, from ``saved_at`` on."""

    document = models.ForeignKey(
        MemoryDocument,
        verbose_name=_("document"),
        on_delete=models.CASCADE,
        related_name="versions",
    )
    number = models.PositiveIntegerField(_("number"))
    body = models.TextField(_("body"))
    sha256 = models.CharField(_("SHA-256"), max_length=64, help_text=_("Of the text, in hex."))
    saved_at = models.DateTimeField(_("saved at"), default=timezone.now)
    saved_by_kind = models.CharField(_("saved by (kind)"), max_length=16)
    saved_by_name = models.CharField(_("saved by"), max_length=255, blank=True)

    class Meta:
        verbose_name = _("memory document version")
        verbose_name_plural = _("memory document versions")
        ordering: ClassVar = ["document", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["document", "number"], name="memory_document_version_once"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["sha256"], name="memory_document_version_sha"),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"
