"""The tables of the staff site."""

import uuid
from typing import ClassVar

from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.outgoing_webhooks.endpoints import secret_new
from memoryproject.foundation.staff_notices import Kind
from sessions_app.models import Chat


class Operations(models.Model):
    """Holds the permission to operate the server. Has no table."""

    class Meta:
        verbose_name = _("operations")
        verbose_name_plural = _("operations")
        managed = False
        default_permissions = ()
        permissions: ClassVar = [
            ("operate_server", "Can see the server's settings and queues and test the provider")
        ]

    def __str__(self) -> str:
        return "operations"


class DefaultGrant(models.Model):
    """Records that a group got a permission automatically.

    It isn't given again after somebody removed it. The names are stored, because the group and the
    permission may be gone.
    """

    group = models.CharField(_("group"), max_length=150)
    permission = models.CharField(_("permission"), max_length=255)

    class Meta:
        verbose_name = _("default grant")
        verbose_name_plural = _("default grants")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["group", "permission"], name="one_default_grant")
        ]

    def __str__(self) -> str:
        return f"{self.group}: {self.permission}"


class FailedLogin(AccessAttempt):  # type: ignore[misc]
    """Failed logins to one name from one address and browser, as django-axes counts them."""

    class Meta:
        proxy = True
        default_permissions = ("view", "delete")
        verbose_name = _("failed login")
        verbose_name_plural = _("failed logins")

    def __str__(self) -> str:
        return f"{self.failures_since_start} from {self.ip_address}"


class Quarter(models.Model):
    """The figures of a quarter of an hour from ``starts_at`` (UTC).

    The days of every time zone consist of whole quarters. A quarter without events has no row.

    Messages count when they were stored (``received_at``), turns when they were created
    (``created_at``), however late they end. ``answer_bins`` and ``answer_counts`` are parallel
    lists: the number of answers by duration (see ``dashboard.durations``). ``unknown``: answers to
    questions for which nothing was recalled; ``rated_good`` and ``rated_bad``: answers with such a
    rating. So are ``model_names``,
    ``prompt_tokens`` and ``completion_tokens``. ``dashboard.rollups`` always recounts the whole row
    and never adds to it.
    """

    starts_at = models.DateTimeField(_("starts at"), primary_key=True)
    messages = models.PositiveIntegerField(_("messages"))
    messages_in = models.PositiveIntegerField(_("messages in"))
    messages_out = models.PositiveIntegerField(_("messages out"))
    answers = models.PositiveIntegerField(_("answers"))
    failed = models.PositiveIntegerField(_("failed"))
    missed = models.PositiveIntegerField(_("missed"))
    held = models.PositiveIntegerField(_("held"))
    unknown = models.PositiveIntegerField(_("unknown"))
    rated_good = models.PositiveIntegerField(_("rated good"))
    rated_bad = models.PositiveIntegerField(_("rated bad"))
    answer_bins = ArrayField(models.PositiveSmallIntegerField(), verbose_name=_("answer bins"))
    answer_counts = ArrayField(models.PositiveIntegerField(), verbose_name=_("answer counts"))
    model_names = ArrayField(models.CharField(max_length=128), verbose_name=_("model names"))
    prompt_tokens = ArrayField(models.PositiveBigIntegerField(), verbose_name=_("prompt tokens"))
    completion_tokens = ArrayField(
        models.PositiveBigIntegerField(), verbose_name=_("completion tokens")
    )
    memories_added = models.PositiveIntegerField(_("memories added"))
    receipts = models.PositiveIntegerField(_("receipts"))
    memories_forgotten = models.PositiveBigIntegerField(_("memories erased"))

    class Meta:
        verbose_name = _("quarter")
        verbose_name_plural = _("quarters")
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.starts_at:%Y-%m-%d %H:%M} UTC"


class Day(models.Model):
    """The stored figures of a day (or of any time span).

    They save adding up the quarters of a month. They are valid while nothing in the day is marked,
    and are deleted when one of its quarters is recounted.
    """

    starts_at = models.DateTimeField(_("starts at"))
    ends_at = models.DateTimeField(_("ends at"))
    figures = models.JSONField(_("figures"))

    class Meta:
        verbose_name = _("day")
        verbose_name_plural = _("days")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["starts_at", "ends_at"], name="day_once")
        ]

    def __str__(self) -> str:
        return f"{self.starts_at:%Y-%m-%d %H:%M} UTC"


class Mark(models.Model):
    """Marks that data of a quarter changed since it was counted.

    Triggers on the counted tables write these rows (see the migration) in the transaction of the
    change: a reader that sees the change sees the mark. Rows are only inserted, so that writers
    never wait for each other.
    """

    quarter = models.DateTimeField(_("quarter"))

    class Meta:
        verbose_name = _("mark")
        verbose_name_plural = _("marks")
        default_permissions = ()
        indexes: ClassVar = [models.Index(fields=["quarter"], name="marks_by_quarter")]

    def __str__(self) -> str:
        return f"{self.quarter:%Y-%m-%d %H:%M} UTC"


class Alert(models.Model):
    """Something that needed attention, from when it was noticed until it was over.

    ``key`` names the condition. ``told_at`` and ``told_over_at``: when every channel had been told
    that it began and that it was over.
    """

    key = models.CharField(_("key"), max_length=400)
    text = ErrorField(_("text"))
    since = models.DateTimeField(_("since"), default=timezone.now)
    over_at = models.DateTimeField(_("ended at"), null=True, blank=True)
    told_at = models.DateTimeField(_("notified at"), null=True, blank=True)
    told_over_at = models.DateTimeField(_("end notified at"), null=True, blank=True)

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        default_permissions = ()
        ordering: ClassVar = ["-id"]
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["key"], condition=models.Q(over_at=None), name="one_open_alert_a_key"
            )
        ]

    def __str__(self) -> str:
        return str(self.text)


# What members of staff are notified of, and how.


class Channel(models.TextChoices):
    PUSH = labelled("push", _("Push"))
    EMAIL = labelled("email", _("E-mail"))
    TELEGRAM = labelled("telegram", _("Telegram"))
    WEBHOOK = labelled("webhook", _("Webhook"))


# By the hours in which e-mails are collected.
RHYTHMS = ((0, _("At once")), (1, _("Every hour, together")), (24, _("Once a day, together")))


def wanted_at_first() -> list[str]:
    """Return the choices of who has made none."""
    return [f"{Kind.ASKED}:{channel}" for channel in Channel.values]


class NotificationSettings(models.Model):
    """How one member of staff is notified; who has no row has its defaults.

    ``wanted``: kinds and channels as "asked:push". Between ``quiet_from`` and ``quiet_until`` in
    ``time_zone`` nothing is sent. ``language``: of the texts.
    """

    user = models.OneToOneField(
        User,
        models.CASCADE,
        primary_key=True,
        verbose_name=_("user"),
        related_name="notification_settings",
    )
    wanted = ArrayField(
        models.CharField(max_length=32), verbose_name=_("wanted"), default=wanted_at_first
    )
    rhythm = models.PositiveSmallIntegerField(_("when"), choices=RHYTHMS, default=0)
    telegram_chat = models.CharField(_("your id at Telegram"), max_length=64, blank=True)
    webhook_url = models.CharField(_("address"), max_length=2000, blank=True)
    webhook_secret = models.CharField(_("secret"), max_length=128, default=secret_new)
    quiet_from = models.TimeField(_("from"), null=True, blank=True)
    quiet_until = models.TimeField(_("until"), null=True, blank=True)
    time_zone = models.CharField(_("time zone"), max_length=64)
    language = models.CharField(_("language"), max_length=16, default="en")

    class Meta:
        verbose_name = verbose_name_plural = _("Notifications")
        default_permissions = ()

    def __str__(self) -> str:
        return f"notifications of {self.user_id}"


class PushDevice(models.Model):
    """A browser that takes pushes for a member of staff, with the keys that encrypt them."""

    user = models.ForeignKey(
        User, models.CASCADE, verbose_name=_("user"), related_name="push_devices"
    )
    endpoint = models.CharField(_("address"), max_length=1000, unique=True)
    p256dh = models.CharField(_("key"), max_length=88)
    auth = models.CharField(_("secret"), max_length=24)
    name = models.CharField(_("name"), max_length=64)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = verbose_name_plural = _("Push")
        default_permissions = ()
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return self.name


class Notification(models.Model):
    """An event for one person by one channel, with ids alone: its words are looked up when it is
    sent.

    ``target``: a channel; of pushes with the device, as "push:12". ``subject``: the event's own id,
    such as an answer's. ``due_at``: None once it was sent, given up (then it has an error) or
    dealt with. A worker that sends it puts it off first, so that no other one does.
    """

    id = models.UUIDField(_("ID"), primary_key=True, default=uuid.uuid4)
    user = models.ForeignKey(User, models.CASCADE, "+", verbose_name=_("user"), db_index=False)
    target = models.CharField(_("channel"), max_length=32)
    kind = models.CharField(_("kind"), max_length=16)
    subject = models.CharField(_("event"), max_length=100)
    chat = models.ForeignKey(Chat, models.CASCADE, "+", verbose_name=_("chat"), null=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, db_index=True)
    due_at = models.DateTimeField(_("due at"), null=True)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    error = ErrorField(_("error"), blank=True)

    class Meta:
        verbose_name = verbose_name_plural = _("Notifications")
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "target", "kind", "subject"], name="one_notification_an_event"
            )
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["due_at"], condition=Q(due_at__isnull=False), name="notifications_due"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user_id} by {self.target}"
