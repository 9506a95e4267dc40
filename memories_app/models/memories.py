"""A long-term memory."""

import json
import uuid
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Cast, Concat, Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _, pgettext_lazy

from memoryproject.foundation.choices import labelled

# With it begin the fact keys of memories that are compared with no others.
ALONE = "own:"


class Visibility(models.TextChoices):
    """The people for whom a memory is recalled."""

    OWNER = "owner", _("Owner only")
    CHAT = "chat", _("This client: only the chat that it came from")
    PUBLIC = "public", _("Everyone")


class MemoryStatus(models.TextChoices):
    """The status of a memory. Only active memories are recalled.

    A superseded one was replaced by a newer one that contradicts it, or was merged into it; a
    proposed one waits for staff.
    """

    ACTIVE = labelled("active", pgettext_lazy("status", "Active"))
    SUPERSEDED = labelled("superseded", _("Superseded"))
    PROPOSED = labelled("proposed", _("Proposed"))


class Memory(models.Model):
    """A fact to remember. ``chat_id`` is the chat's id as a plain column: this app knows no chats.

    ``scope`` is the set of memories within which a fact is stored only once: those of the owner,
    the public ones, or those of one chat. ``fact_key`` and ``likeness`` are the forms in which
    the text is compared: see ``memories_app.facts.facts``. A keyed memory has ``namespace`` and
    ``key``, unique in its scope, and ``value``; its ``content`` may be empty. After ``expires_at``
    a memory is neither recalled nor listed. ``valid_from`` and ``valid_until`` say when the fact
    holds: see ``memories_app.facts.validity``. ``vector_due_at``: from when a worker may make its
    vector; empty if it waits for none.
    """

    memory_id = models.UUIDField(
        verbose_name=_("memory id"), primary_key=True, default=uuid.uuid4, editable=False
    )
    content = models.TextField(verbose_name=_("content"))
    content_hash = models.CharField(
        verbose_name=_("content hash"), max_length=64, editable=False, help_text=_("SHA-256, hex.")
    )
    type = models.CharField(verbose_name=_("type"), max_length=64, default="fact")
    category = models.CharField(verbose_name=_("category"), max_length=64, blank=True)
    tags = ArrayField(
        models.CharField(max_length=64), default=list, blank=True, verbose_name=_("tags")
    )
    visibility = models.CharField(
        verbose_name=_("visible to"), max_length=16, choices=Visibility.choices
    )
    chat_id = models.UUIDField(_("chat id"), null=True, blank=True)
    scope = models.GeneratedField(
        verbose_name=_("scope"),
        expression=Case(
            When(
                visibility=Visibility.CHAT,
                then=Concat(Value("chat:"), Cast("chat_id", models.TextField())),
            ),
            default=F("visibility"),
            output_field=models.TextField(),
        ),
        output_field=models.TextField(),
        db_persist=True,
    )
    source = models.CharField(verbose_name=_("source"), max_length=64, blank=True)
    source_message_id = models.UUIDField(_("source message id"), null=True, blank=True)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    # NULL: it isn't a keyed memory.
    namespace = models.CharField(  # noqa: DJ001
        _("namespace"), max_length=256, null=True, blank=True, editable=False
    )
    key = models.CharField(  # noqa: DJ001
        _("key"), max_length=256, null=True, blank=True, editable=False
    )
    value = models.JSONField(_("value"), null=True, blank=True, editable=False)
    confidence = models.FloatField(
        verbose_name=_("confidence"),
        null=True,
        blank=True,
        help_text=_("From 0 to 1, for memories learned from conversations."),
    )
    status = models.CharField(
        verbose_name=_("status"),
        max_length=16,
        choices=MemoryStatus.choices,
        default=MemoryStatus.ACTIVE,
    )
    pinned = models.BooleanField(
        verbose_name=_("pinned"),
        default=False,
        help_text=_("Listed first, and never merged or replaced without staff."),
    )
    expires_at = models.DateTimeField(verbose_name=_("expires"), null=True, blank=True)
    said_at = models.DateTimeField(
        verbose_name=_("said"), default=timezone.now, db_default=Now(), blank=True
    )
    valid_from = models.DateTimeField(verbose_name=_("valid from"), null=True, blank=True)
    valid_until = models.DateTimeField(
        verbose_name=_("valid until"),
        null=True,
        blank=True,
        help_text=_("The last moment at which it holds. After it, it counts as ended."),
    )
    told_count = models.PositiveIntegerField(verbose_name=_("mentions"), default=1)
    last_told_at = models.DateTimeField(verbose_name=_("last mentioned"), default=timezone.now)
    superseded_by = models.ForeignKey(
        "self",
        verbose_name=_("superseded by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="supersedes",
    )
    superseded_at = models.DateTimeField(_("superseded at"), null=True, blank=True)
    created_at = models.DateTimeField(verbose_name=_("created"), default=timezone.now)
    updated_at = models.DateTimeField(verbose_name=_("changed"), auto_now=True)
    fact_key = models.CharField(_("fact key"), max_length=64, editable=False)
    likeness = ArrayField(
        models.CharField(max_length=32),
        verbose_name=_("likeness"),
        default=list,
        blank=True,
        editable=False,
    )
    terms = ArrayField(
        models.TextField(), verbose_name=_("terms"), default=list, blank=True, editable=False
    )
    term_count = models.PositiveIntegerField(_("term count"), default=0, editable=False)
    vector_due_at = models.DateTimeField(_("vector due at"), null=True, blank=True, editable=False)
    document = models.ForeignKey(
        "memories_app.SourceDocument",
        verbose_name=_("document"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="memories",
        editable=False,
        # passage_once_a_document finds the passages. An index of all rows would be chosen for
        # "without a document", which is nearly every memory.
        db_index=False,
    )
    position = models.PositiveIntegerField(
        _("position"),
        null=True,
        blank=True,
        editable=False,
        help_text=_("Its place in the document, from 1."),
    )

    class Meta:
        verbose_name = _("memory")
        verbose_name_plural = _("memories")
        ordering: ClassVar = ["-created_at"]
        permissions: ClassVar = [("export_memory", "Can export memories")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(visibility__in=Visibility.values), name="memory_visibility_known"
            ),
            models.CheckConstraint(
                condition=Q(status__in=MemoryStatus.values), name="memory_status_known"
            ),
            models.CheckConstraint(
                condition=~Q(visibility=Visibility.CHAT) | Q(chat_id__isnull=False),
                name="chat_memory_has_its_chat",
            ),
            models.CheckConstraint(condition=Q(told_count__gte=1), name="memory_was_told"),
            models.CheckConstraint(condition=~Q(fact_key=""), name="memory_has_its_fact_key"),
            # Processes that store the same fact at the same time create one memory.
            models.UniqueConstraint(
                fields=["scope", "fact_key"],
                # Two documents may contain the same passage.
                condition=Q(status=MemoryStatus.ACTIVE, document__isnull=True),
                name="one_memory_a_fact",
            ),
            models.UniqueConstraint(
                fields=["document", "position"],
                condition=Q(document__isnull=False),
                name="passage_once_a_document",
            ),
            # A turn that is retried after a crash must not store a memory twice.
            models.UniqueConstraint(
                fields=["source_message_id"],
                condition=Q(source="command"),
                name="one_memory_a_command",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["visibility", "chat_id"]),
            models.Index(fields=["-created_at"]),
            # Recall reads the newest of a scope. All have a hash, and only recall says so: with old
            # figures about the table, the planner would search it for equal facts.
            models.Index(
                fields=["scope", "-created_at", "memory_id"],
                condition=Q(status=MemoryStatus.ACTIVE, content_hash__gt=""),
                name="memories_of_scope",
            ),
            models.Index(fields=["-pinned", "-created_at", "memory_id"], name="memories_listed"),
            # For programs that follow what changes.
            models.Index(fields=["-updated_at", "-memory_id"], name="memories_by_change"),
            # For staff's filters and their choices.
            models.Index(fields=["type"], name="memories_by_type"),
            models.Index(fields=["category"], name="memories_by_category"),
            models.Index(fields=["source"], name="memories_by_source"),
            models.Index(
                fields=["chat_id", "-pinned", "-created_at", "memory_id"], name="memories_of_chat"
            ),
            models.Index(
                fields=["status", "-created_at"],
                condition=~Q(status=MemoryStatus.ACTIVE),
                name="memories_not_active",
            ),
            models.Index(
                fields=["expires_at"],
                condition=Q(expires_at__isnull=False),
                name="memories_by_expiry",
            ),
            models.Index(
                fields=["vector_due_at"],
                condition=Q(vector_due_at__isnull=False),
                name="memories_with_vector_due",
            ),
            GinIndex(fields=["tags"], name="memory_tags"),
            # For filters by what integrations stored; only containment is asked for.
            GinIndex(OpClass(F("metadata"), name="jsonb_path_ops"), name="memory_metadata"),
            # Keyed memories are listed in this order.
            models.Index(
                fields=["scope", "namespace", "key"],
                condition=Q(key__isnull=False),
                name="memories_keyed",
            ),
            GinIndex(
                OpClass(F("value"), name="jsonb_path_ops"),
                condition=Q(value__isnull=False),
                name="memory_value",
            ),
            GinIndex(fields=["terms"], name="memory_terms"),
            # A text has two or three keys. A search among so many keys as a batch has would read
            # a list of pending entries for a second.
            GinIndex(fields=["likeness"], fastupdate=False, name="memory_likeness"),
        ]

    def __str__(self) -> str:
        return (self.content or f"{self.namespace} {self.key}")[:80]

    @property
    def value_as_json(self) -> str:
        """Return the value as people read it."""
        return json.dumps(self.value, ensure_ascii=False, indent=2)

    @property
    def stands_alone(self) -> bool:
        """Return whether it is compared with no other memory."""
        return self.fact_key.startswith(ALONE)


# The sources of memories, and their earlier contents.


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
    value = models.JSONField(_("value"), null=True, blank=True)
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
            models.UniqueConstraint(fields=["memory", "number"], name="revision_number_once")
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
