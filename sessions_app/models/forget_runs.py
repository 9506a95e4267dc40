"""Runs that forget the things that staff chose, and their progress."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork
from sessions_app.models.receipts import ForgetReceipt, ForgottenKind, Requested, Requester


class RunState(models.TextChoices):
    """draft (chosen, not confirmed: nothing happens) → waiting → running → done."""

    DRAFT = "draft", _("to be confirmed")
    WAITING = "waiting", _("waits for a worker")
    RUNNING = "running", _("in progress")
    DONE = "done", _("done")


OPEN_RUNS = (str(RunState.WAITING), str(RunState.RUNNING))


class ItemState(models.TextChoices):
    """The state of one thing of a run.

    forgotten: it has a receipt. gone: it no longer existed, or was erased together with another
    one. moved: its chat was merged into another one meanwhile. found: the probe still found it.
    failed: another error. With found and failed, nothing was changed for this one.
    """

    WAITING = "waiting", _("waits")
    FORGOTTEN = "forgotten", _("erased")
    GONE = "gone", _("was gone already")
    MOVED = "moved", _("is part of another chat now")
    FOUND = "found", _("still found: nothing was changed")
    FAILED = "failed", _("failed: nothing was changed")


TROUBLES = (str(ItemState.MOVED), str(ItemState.FOUND), str(ItemState.FAILED))


class ForgetRun(Requested, LeasedWork):
    """Things that are forgotten together, one after the other: ids, no content.

    A worker owns the run while it holds the lease; ``lease_token`` is new with every claim.
    ``done`` counts all finished items, ``failed`` those that failed.
    """

    # Longer than the queue lets a task run: a running worker is not mistaken for a stopped one.
    lease_length = timedelta(minutes=12)

    run_id = models.UUIDField(_("run id"), primary_key=True, default=uuid.uuid4, editable=False)
    asked_by = models.CharField(_("asked by"), max_length=255)
    state = models.CharField(
        _("state"), max_length=16, choices=RunState.choices, default=RunState.DRAFT
    )
    total = models.PositiveIntegerField(_("total"), default=0)
    done = models.PositiveIntegerField(_("done"), default=0)
    failed = models.PositiveIntegerField(_("failed"), default=0)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    confirmed_at = models.DateTimeField(_("confirmed at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("erasure")
        verbose_name_plural = _("erasures")
        ordering: ClassVar = ["-created_at", "-run_id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=RunState.values), name="forget_run_state_known"
            ),
            models.CheckConstraint(
                condition=Q(requester__in=Requester.values), name="forget_run_requester_known"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-created_at", "-run_id"]),
            models.Index(
                fields=["run_id"], condition=Q(state__in=OPEN_RUNS), name="forget_runs_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}"


class ForgetItem(models.Model):
    """One thing of a run.

    ``trace`` is a row of ChatAddress, which moves along when its chat is merged into another
    one, ``moved_to``. ``attempts``: how often a worker began it.
    """

    run = models.ForeignKey(
        ForgetRun, verbose_name=_("run"), on_delete=models.CASCADE, related_name="items"
    )
    number = models.PositiveIntegerField(_("number"))
    kind = models.CharField(_("kind"), max_length=16, choices=ForgottenKind.choices)
    object_id = models.UUIDField(_("object id"))
    trace = models.BigIntegerField(_("trace"), null=True, blank=True)
    state = models.CharField(
        _("state"), max_length=16, choices=ItemState.choices, default=ItemState.WAITING
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    moved_to = models.UUIDField(_("moved to"), null=True, blank=True)
    receipt = models.OneToOneField(
        ForgetReceipt,
        verbose_name=_("receipt"),
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="item",
    )
    error = ErrorField(
        _("error"), blank=True, help_text=_("Where it was still found, without the text.")
    )

    class Meta:
        verbose_name = _("item to erase")
        verbose_name_plural = _("items to erase")
        ordering: ClassVar = ["run", "number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "number"], name="forget_item_number_once"),
            models.UniqueConstraint(
                fields=["run", "kind", "object_id"], name="forget_item_once_a_run"
            ),
            models.CheckConstraint(
                condition=Q(state__in=ItemState.values), name="forget_item_state_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=ForgottenKind.values), name="forget_item_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.object_id}"
