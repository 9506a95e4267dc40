"""Documents whose text is stored as memories."""

import uuid
from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories_app.memory_document_format import names
from memories_app.models.memories import Visibility
from memoryproject.foundation.choices import labelled
from memoryproject.foundation.errors.stored_errors import ErrorField, ErrorsField
from memoryproject.foundation.leases import LeasedWork


class DocumentState(models.TextChoices):
    """received → extracting → ready, or failed for good."""

    RECEIVED = labelled("received", _("Received"))
    EXTRACTING = labelled("extracting", _("Extracting"))
    READY = labelled("ready", _("Ready"))
    FAILED = labelled("failed", _("Failed"))


class SourceDocument(LeasedWork):
    """A file whose text becomes memories. The file itself is kept only until it is read.

    ``chat_id`` and ``visibility`` are those of its memories. ``copy_names``: by their ids, the
    names of copies that staff uploaded and a merge of two chats removed; they go with the file. A
    worker owns the document while it holds the lease, whose token is new with every claim.
    """

    # Longer than reading takes, or one batch of vectors with its retries.
    lease_length = timedelta(minutes=5)

    document_id = models.UUIDField(
        verbose_name=_("document id"), primary_key=True, default=uuid.uuid4, editable=False
    )
    name = models.CharField(verbose_name=_("name"), max_length=255)
    title = models.CharField(verbose_name=_("title"), max_length=255, blank=True)
    media_type = models.CharField(verbose_name=_("file type"), max_length=128, blank=True)
    size = models.PositiveBigIntegerField(verbose_name=_("size"), help_text=_("In bytes."))
    sha256 = models.CharField(_("SHA-256"), max_length=64, help_text=_("Of the file, in hex."))
    pages = models.PositiveIntegerField(verbose_name=_("pages"), null=True, blank=True)
    characters = models.PositiveIntegerField(verbose_name=_("characters"), default=0)
    chat_id = models.UUIDField(verbose_name=_("chat"), null=True, blank=True)
    visibility = models.CharField(
        verbose_name=_("visible to"), max_length=16, choices=Visibility.choices
    )
    source_message_id = models.UUIDField(verbose_name=_("message"), null=True, blank=True)
    state = models.CharField(
        verbose_name=_("state"),
        max_length=16,
        choices=DocumentState.choices,
        default=DocumentState.RECEIVED,
    )
    error = ErrorField(verbose_name=_("error"), blank=True)
    error_code = models.CharField(_("error code"), max_length=32, blank=True)
    warnings = ErrorsField(_("warnings"), default=list, blank=True)
    uploaded_by = models.CharField(verbose_name=_("uploaded by"), max_length=150, blank=True)
    copy_names = models.JSONField(_("names of removed copies"), default=dict, blank=True)
    created_at = models.DateTimeField(verbose_name=_("created"), default=timezone.now)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)

    class Meta:
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            # The same file in the same scope is the same document.
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
                fields=["chat_id", "-created_at"],
                condition=Q(chat_id__isnull=False),
                name="documents_of_chat",
            ),
            models.Index(
                fields=["created_at"],
                condition=Q(state__in=[DocumentState.RECEIVED, DocumentState.EXTRACTING]),
                name="documents_waiting",
            ),
        ]

    def __str__(self) -> str:
        return self.name


# Memory documents of programs (context, decisions, interfaces, handoffs) with all versions.


class MemoryDocument(models.Model):
    """A document's place, and the fields of its newest version for lists and their order.

    The text itself is in the versions.
    """

    id = models.UUIDField(_("id"), primary_key=True, default=uuid.uuid4, editable=False)
    category = models.CharField(
        verbose_name=_("category"),
        max_length=16,
        choices=[
            (names.CONTEXT, _("context")),
            (names.DECISIONS, _("decisions")),
            (names.INTERFACES, _("interfaces")),
            (names.HANDOFFS, _("handoffs")),
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
                condition=Q(category__in=names.CATEGORIES), name="memory_document_category_known"
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
            )
        ]
        indexes: ClassVar = [models.Index(fields=["sha256"], name="memory_document_version_sha")]

    def __str__(self) -> str:
        return f"version {self.number}"
