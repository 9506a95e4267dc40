"""Proposals to staff about similar memories."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories_app.models.memories import Memory
from memoryproject.foundation.choices import labelled


class ProposalKind(models.TextChoices):
    """merge: the memories state much the same. replace: the newer one contradicts a pinned one,
    or seems to contradict one that may be true beside it.
    """

    MERGE = labelled("merge", _("Merge"))
    REPLACE = labelled("replace", _("Replace"))


class ProposalState(models.TextChoices):
    OPEN = labelled("open", _("Open"))
    ACCEPTED = labelled("accepted", _("Accepted"))
    DISMISSED = labelled("dismissed", _("Dismissed"))


class DecisionReason(models.TextChoices):
    """The reason of staff's decision.

    The fixed choices ensure that no typed text is stored that forgetting would have to search.
    """

    WRONG = "wrong", _("It isn't true")
    UNSAID = "unsaid", _("Nobody said it")
    PRIVATE = "private", _("It shouldn't be kept")
    TRIVIAL = "trivial", _("It isn't worth remembering")
    DIFFERENT = "different", _("These are different facts")
    OUTDATED = "outdated", _("It doesn't hold any more")
    OTHER = "other", _("Another reason")


class MergeProposal(models.Model):
    """A proposal to merge memories of one scope. Nothing happens until staff accept it.

    ``content`` is the text to keep; ``alike_key`` identifies the memories, so that a decided
    proposal isn't made again.
    """

    kind = models.CharField(verbose_name=_("kind"), max_length=16, choices=ProposalKind.choices)
    content = models.TextField(_("content"))
    similarity = models.FloatField(
        _("similarity"), help_text=_("From 0 (different) to 1 (the same).")
    )
    alike_key = models.CharField(_("alike key"), max_length=64, editable=False, unique=True)
    state = models.CharField(
        verbose_name=_("state"),
        max_length=16,
        choices=ProposalState.choices,
        default=ProposalState.OPEN,
    )
    created_at = models.DateTimeField(verbose_name=_("created"), default=timezone.now)
    decided_at = models.DateTimeField(_("decided at"), null=True, blank=True)
    decided_by = models.CharField(_("decided by"), max_length=255, blank=True)
    reason = models.CharField(
        _("reason"), max_length=16, choices=DecisionReason.choices, blank=True
    )

    class Meta:
        verbose_name = _("merge proposal")
        verbose_name_plural = _("merge proposals")
        ordering: ClassVar = ["-created_at", "-id"]
        permissions: ClassVar = [
            ("decide_mergeproposal", "Can decide duplicates, contradictions and proposals")
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=ProposalState.values), name="proposal_state_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=ProposalKind.values), name="proposal_kind_known"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["state", "-created_at"])]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.pk} ({self.get_state_display()})"


class ProposalMemory(models.Model):
    """A memory of a proposal; the one with ``number`` 1 stays."""

    proposal = models.ForeignKey(
        MergeProposal, verbose_name=_("proposal"), on_delete=models.CASCADE, related_name="parts"
    )
    memory = models.ForeignKey(
        Memory, verbose_name=_("memory"), on_delete=models.CASCADE, related_name="proposals"
    )
    number = models.PositiveIntegerField(_("number"))

    class Meta:
        verbose_name = _("proposal memory")
        verbose_name_plural = _("proposal memories")
        ordering: ClassVar = ["proposal", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["proposal", "memory"], name="memory_once_a_proposal")
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} in {self.proposal_id}"
