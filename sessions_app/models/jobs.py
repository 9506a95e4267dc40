"""Long work that a program asks for and then looks after: imports, exports, vectors, erasures."""

import uuid

from django.db import models
from django.db.models import CASCADE, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork


class JobKind(models.TextChoices):
    IMPORT = labelled("import", _("Import of memories"))
    EXPORT = labelled("export", _("Export of memories"))
    REEMBED = labelled("reembed", _("Making of vectors"))
    ERASE = labelled("erase", _("Erasure of a chat"))


class JobState(models.TextChoices):
    QUEUED = labelled("queued", _("Queued"))
    RUNNING = labelled("running", _("Running"))
    DONE = labelled("done", _("Done"))
    FAILED = labelled("failed", _("Failed"))
    CANCELLED = labelled("cancelled", _("Cancelled"))


OPEN_STATES = (JobState.QUEUED, JobState.RUNNING)


class Job(LeasedWork):
    """One piece of long work. ``caller``: who asked, and alone sees it.

    ``params``: ids and switches of ours; for an export also the place that it has reached.
    ``done`` of ``total``: lines, memories or texts; ``total`` None while it isn't known.
    ``attempts``: how often it failed since it last got on; ``due_at``: when it is tried again.
    """

    job_id = models.UUIDField(_("job id"), primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(_("kind"), max_length=8, choices=JobKind)
    state = models.CharField(_("state"), max_length=9, choices=JobState, default=JobState.QUEUED)
    caller = models.CharField(_("caller"), max_length=64)
    actor_kind = models.CharField(_("actor kind"), max_length=16)
    actor_name = models.CharField(_("actor name"), max_length=255)
    params = models.JSONField(_("parameters"), default=dict)
    done = models.PositiveBigIntegerField(_("done"), default=0)
    total = models.PositiveBigIntegerField(_("total"), null=True)
    result = models.JSONField(_("result"), null=True)
    error = ErrorField(_("error"), blank=True)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    due_at = models.DateTimeField(_("due at"), default=timezone.now)
    finished_at = models.DateTimeField(_("finished at"), null=True)

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ()
        indexes = [
            models.Index(fields=["caller", "created_at"], name="jobs_of_a_caller"),
            models.Index(
                fields=["due_at"], condition=Q(state__in=("queued", "running")), name="jobs_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.job_id}"


class JobPart(models.Model):
    """Lines of an import that wait, or of an export that were made, compressed with gzip."""

    job = models.ForeignKey(Job, CASCADE, "parts", verbose_name=_("job"))
    number = models.PositiveIntegerField(_("number"))
    lines = models.PositiveIntegerField(_("lines"))
    body = models.BinaryField(_("body"))

    class Meta:
        verbose_name = _("part of a job")
        verbose_name_plural = _("parts of jobs")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="job_part_once")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.number}"
