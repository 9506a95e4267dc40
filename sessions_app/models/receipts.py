"""Receipts and counters of forgettings."""

import uuid
from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import CASCADE, Q
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import known
from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork
from memoryproject.foundation.text.uuids import iso_utc
from sessions_app.models.summaries import MediaFile, MediaState

# Files of messages are counted in ``swept`` under this name, next to the tables' rows.
MEDIA_FILES = "media files"


class ForgottenKind(models.TextChoices):
    MEMORY = "memory", _("Memory")
    MESSAGE = "message", _("Message")
    MESSAGES = "messages", _("Messages of a session")
    SESSION = "session", _("Session")
    CHAT = "chat", _("Chat")
    DOCUMENT = "document", _("Document")
    MEMORY_DOCUMENT = "memory_document", _("Memory document")


class Requester(models.TextChoices):
    """The person who requested the forgetting, besides the one who carried it out."""

    UNSAID = "", _("not stated")
    PERSON = "person", _("the person concerned")
    REPRESENTATIVE = "representative", _("somebody on the person's behalf")
    BUSINESS = "business", _("the business itself")
    AUTHORITY = "authority", _("an authority or a court")


MAX_REQUEST_NUMBER = 40


class Requested(models.Model):
    """The request for a forgetting: by whom, and its number in the business's own files."""

    requester = models.CharField(
        _("asked for by"), max_length=16, choices=Requester, blank=True, default="", db_default=""
    )
    request_number = models.CharField(
        _("request number"), max_length=MAX_REQUEST_NUMBER, blank=True, default="", db_default=""
    )

    class Meta:
        abstract = True


class ForgetReceipt(Requested):
    """Proof of a forgetting, without the forgotten content.

    ``content_hash`` is keyed, so that the text can't be guessed by trying. ``swept`` holds how
    many rows of each table were deleted or emptied. ``actor`` is a staff member's or token's
    name, or a pseudonym.

    ``chat_id``: the chat in which the object was visible to others than the owner; tokens that are
    bound to it may read the receipt. ``person_keys``: keyed hashes of the addresses of the object's
    chat, by which the receipt is found when the chat is gone. ``call_key``: the keyed hash of the
    Idempotency-Key of the call that erased it.
    """

    receipt_id = models.UUIDField(_("receipt id"), unique=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(_("kind"), max_length=16, choices=ForgottenKind)
    object_id = models.UUIDField(_("object id"))
    forgotten_at = models.DateTimeField(_("erased at"), default=timezone.now)
    actor_kind = models.CharField(_("actor kind"), max_length=16)
    actor = models.CharField(_("actor"), max_length=255, blank=True)
    content_hash = models.CharField(_("content hash"), max_length=64)
    swept = models.JSONField(_("removed"), default=dict)
    probe = models.CharField(_("check"), max_length=16)
    # The queries and reads of the probe: counts and names, never content.
    probe_details = models.JSONField(_("check details"), default=dict)
    # What the check still found: {"what", "id"}, never content.
    left = models.JSONField(
        _("still there"), default=list, db_default=models.Value([], models.JSONField()), blank=True
    )
    chat_id = models.UUIDField(_("chat id"), null=True, blank=True)
    person_keys = ArrayField(
        models.CharField(max_length=64), verbose_name=_("person keys"), default=list, blank=True
    )
    call_key = models.CharField(_("call key"), max_length=64, blank=True)

    class Meta:
        verbose_name = _("receipt")
        verbose_name_plural = _("receipts")
        ordering = ["-id"]
        permissions = [("forget", "Can forget memories, messages, sessions and people")]
        constraints = [
            known("kind", ForgottenKind, "forgotten_kind_known"),
            known("requester", Requester, "receipt_requester_known"),
        ]
        indexes = [
            models.Index(fields=["object_id"]),
            models.Index(fields=["-forgotten_at", "-id"]),
            models.Index(
                fields=["chat_id", "-id"],
                condition=Q(chat_id__isnull=False),
                name="receipts_of_chat",
            ),
            GinIndex(fields=["person_keys"], name="receipts_of_person"),
            models.Index(fields=["call_key"], condition=~Q(call_key=""), name="receipts_of_call"),
            models.Index(
                fields=["request_number"],
                condition=~Q(request_number=""),
                name="receipts_of_request",
            ),
        ]

    def __str__(self) -> str:
        at = date_format(timezone.localtime(self.forgotten_at), "SHORT_DATETIME_FORMAT")
        return f"{self.get_kind_display()}, {at}"

    @property
    def still_there(self) -> list[dict[str, str]]:
        """Return what could not be removed: ``left``, and files whose storage doesn't answer."""
        if MEDIA_FILES not in self.swept:
            return self.left
        rows = MediaFile.objects.filter(receipt_id=self.receipt_id, state=MediaState.STORED)
        keys = rows.order_by("created_at", "pk").values_list("pk", flat=True)
        return [*self.left, *({"what": MEDIA_FILES, "id": str(key)} for key in keys)]

    def as_dict(self) -> dict[str, object]:
        """Return the receipt as the API and the commands show it."""
        return {
            "receipt_id": str(self.receipt_id),
            "kind": self.kind,
            "object_id": str(self.object_id),
            "forgotten_at": iso_utc(self.forgotten_at),
            "swept": self.swept,
            "probe": self.probe,
            "probe_details": self.probe_details,
            "left": self.still_there,
        }


class ForgetEpoch(models.Model):
    """The number of forgettings in a scope: a chat, the owner's memories, or everybody's.

    ``memories``: the number of forgettings that erased memories; the owner can see the memories
    of every chat. Rows are never deleted, so the sums only rise.
    """

    scope = models.CharField(_("scope"), max_length=64, primary_key=True)
    epoch = models.BigIntegerField(_("epoch"), default=0)
    memories = models.BigIntegerField(_("memories"), default=0)

    class Meta:
        verbose_name = _("erasure counter")
        verbose_name_plural = _("erasure counters")

    def __str__(self) -> str:
        return f"{self.scope}: {self.epoch}"


# Runs that forget the things that staff chose, and their progress.


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
    state = models.CharField(_("state"), max_length=16, choices=RunState, default=RunState.DRAFT)
    total = models.PositiveIntegerField(_("total"), default=0)
    done = models.PositiveIntegerField(_("done"), default=0)
    failed = models.PositiveIntegerField(_("failed"), default=0)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    confirmed_at = models.DateTimeField(_("confirmed at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("erasure")
        verbose_name_plural = _("erasures")
        ordering = ["-created_at", "-run_id"]
        constraints = [
            known("state", RunState, "forget_run_state_known"),
            known("requester", Requester, "forget_run_requester_known"),
        ]
        indexes = [
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

    run = models.ForeignKey(ForgetRun, CASCADE, "items", verbose_name=_("run"))
    number = models.PositiveIntegerField(_("number"))
    kind = models.CharField(_("kind"), max_length=16, choices=ForgottenKind)
    object_id = models.UUIDField(_("object id"))
    trace = models.BigIntegerField(_("trace"), null=True, blank=True)
    state = models.CharField(
        _("state"), max_length=16, choices=ItemState, default=ItemState.WAITING
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    moved_to = models.UUIDField(_("moved to"), null=True, blank=True)
    receipt = models.OneToOneField(
        ForgetReceipt,
        models.PROTECT,
        verbose_name=_("receipt"),
        null=True,
        blank=True,
        related_name="item",
    )
    error = ErrorField(
        _("error"), blank=True, help_text=_("Where it was still found, without the text.")
    )

    class Meta:
        verbose_name = _("item to erase")
        verbose_name_plural = _("items to erase")
        ordering = ["run", "number"]
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="forget_item_number_once"),
            models.UniqueConstraint(
                fields=["run", "kind", "object_id"], name="forget_item_once_a_run"
            ),
            known("state", ItemState, "forget_item_state_known"),
            known("kind", ForgottenKind, "forget_item_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.object_id}"
