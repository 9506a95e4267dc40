"""The audit log's tables: the action, actor and time of changes to personal data, never texts."""

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from memoryproject.foundation.errors.stored_errors import ErrorsField


class AuditEvent(models.Model):
    """One recorded action. Rows are only ever added; the database refuses to change one.

    ``actor`` names who did it: a staff member's user name, an API token's name, or a person's
    pseudonym. ``chat`` is the pseudonym of the chat that it concerns. ``content_hash`` is the
    SHA-256 of the affected text, in hex. ``seq`` and ``seal`` are set when the row is sealed: its
    place in the chain, without gaps, and the HMAC that binds it to its predecessor.
    """

    id = models.BigAutoField(_("ID"), primary_key=True)
    at = models.DateTimeField(_("time"), default=timezone.now)
    action = models.CharField(_("action"), max_length=64)
    actor_kind = models.CharField(_("actor kind"), max_length=16)
    actor = models.CharField(_("actor"), max_length=255, blank=True)
    chat = models.CharField(_("chat"), max_length=64, blank=True)
    object_type = models.CharField(_("object type"), max_length=64, blank=True)
    object_id = models.CharField(_("object id"), max_length=255, blank=True)
    content_hash = models.CharField(_("content hash"), max_length=64, blank=True)
    details = models.JSONField(_("details"), default=dict, blank=True)
    seq = models.BigIntegerField(_("seq"), null=True, blank=True, unique=True, editable=False)
    seal = models.CharField(_("seal"), max_length=64, blank=True, editable=False)

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ["-id"]
        permissions = [("export_auditevent", "Can export the audit log")]
        constraints = [
            models.CheckConstraint(
                condition=Q(seq__isnull=True, seal="") | Q(seq__gte=1) & ~Q(seal=""),
                name="audit_sealed_or_not",
            )
        ]
        indexes = [
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
    """The salt of a chat's pseudonym. Without this row nobody can link the pseudonym to the chat.

    ``merged``: a pseudonym of a chat that was later merged into another; new events don't get it,
    but events are found by it.
    """

    chat_id = models.UUIDField(_("chat id"))
    salt = models.CharField(_("salt"), max_length=64)
    merged = models.BooleanField(_("merged"), default=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        verbose_name = _("audit person")
        verbose_name_plural = _("audit people")
        constraints = [
            models.UniqueConstraint(
                fields=["chat_id"], condition=Q(merged=False), name="one_pseudonym_a_chat"
            )
        ]
        indexes = [models.Index(fields=["chat_id"])]

    def __str__(self) -> str:
        return str(self.chat_id)


class AuditHead(models.Model):
    """The end of the chain: one signed row."""

    seq = models.BigIntegerField(_("seq"))
    seal = models.CharField(_("seal"), max_length=64)
    mac = models.CharField(_("mac"), max_length=64)

    class Meta:
        verbose_name = _("audit head")
        verbose_name_plural = _("audit heads")
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_audit_head")]

    def __str__(self) -> str:
        return f"event {self.seq}"


class AuditCheckpoint(models.Model):
    """A signed mark up to which the chain was pruned.

    ``events`` were deleted with it; the row after it continues from ``seal``. Checkpoints are a
    chain of their own.
    """

    number = models.BigIntegerField(_("number"), unique=True)
    seq = models.BigIntegerField(_("seq"))
    seal = models.CharField(_("seal"), max_length=64)
    events = models.BigIntegerField(_("events"))
    at = models.DateTimeField(_("time"))
    mac = models.CharField(_("mac"), max_length=64)

    class Meta:
        verbose_name = _("audit checkpoint")
        verbose_name_plural = _("audit checkpoints")
        ordering = ["number"]

    def __str__(self) -> str:
        return f"up to event {self.seq}"


class AuditSetting(models.Model):
    """A setting as it was when the server last started: a keyed fingerprint of its value."""

    name = models.CharField(_("name"), max_length=64, primary_key=True)
    fingerprint = models.CharField(_("fingerprint"), max_length=64)

    class Meta:
        verbose_name = _("audit setting")
        verbose_name_plural = _("audit settings")

    def __str__(self) -> str:
        return self.name


class AuditSealJob(models.Model):
    """Marks that a sealing job is in the queue: one row, or none."""

    asked_at = models.DateTimeField(_("asked at"), default=timezone.now)

    class Meta:
        verbose_name = _("audit seal job")
        verbose_name_plural = _("audit seal jobs")
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_seal_job")]

    def __str__(self) -> str:
        return "sealing is asked for"


class AuditVerification(models.Model):
    """One requested verification of the log, and its result.

    A client with write access to the database can write a row here, too. The seals are the proof;
    this is a note of the last verification.
    """

    class State(models.TextChoices):
        WAITING = labelled("waiting", _("Waiting"))
        RUNNING = labelled("running", _("Running"))
        DONE = labelled("done", _("Done"))
        FAILED = labelled("failed", _("Failed"))

    asked_at = models.DateTimeField(_("asked at"), default=timezone.now)
    asked_by = models.CharField(_("asked by"), max_length=255, blank=True)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.WAITING)
    # The time of the last sign of life.
    touched_at = models.DateTimeField(_("touched at"), default=timezone.now)
    ended_at = models.DateTimeField(_("ended at"), null=True, blank=True)
    checked = models.BigIntegerField(_("checked"), default=0)
    total = models.BigIntegerField(_("total"), default=0)
    report = ErrorsField(_("report"), null=True, blank=True)

    class Meta:
        verbose_name = _("audit verification")
        verbose_name_plural = _("audit verifications")
        default_permissions = ()
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.asked_at:%Y-%m-%d %H:%M} {self.state}"
