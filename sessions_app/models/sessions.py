"""A conversation's session: short-term memory ends with it."""

import uuid
from datetime import datetime, timedelta

from django.db import models
from django.db.models import CASCADE, Q, Value
from django.db.models.functions import Coalesce, NullIf
from django.utils.translation import gettext_lazy as _, pgettext_lazy

from memoryproject.foundation.choices import known, labelled
from sessions_app.models.chats import Chat

# By then a job has been tried again, or it is lost: longer than "retry" in Q_CLUSTER.
VECTORS_LOST_AFTER = timedelta(minutes=15)


class SessionStatus(models.TextChoices):
    ACTIVE = labelled("active", pgettext_lazy("status", "Active"))
    EXPIRED = labelled("expired", _("Expired"))
    ARCHIVED = labelled("archived", _("Archived"))


class ChatSession(models.Model):
    """A session of a chat.

    ``message_counter`` is the last order_num used. The window, the part of the history that
    counts towards the token limit, starts at order_num ``window_start``; ``total_tokens`` is
    the sum of its messages' tokens. The messages up to order_num ``summarized_until`` are
    summed up. ``vectors_requested_at``: since when a job in the queue is to make vectors of
    messages, unless the job was lost. ``promises_until``: up to this order_num messages were read
    for promises.
    """

    session_id = models.UUIDField(
        _("session id"), primary_key=True, default=uuid.uuid4, editable=False
    )
    chat = models.ForeignKey(Chat, CASCADE, "sessions", verbose_name=_("chat"))
    status = models.CharField(
        _("status"), max_length=16, choices=SessionStatus, default=SessionStatus.ACTIVE
    )
    created_at = models.DateTimeField(_("created at"))
    last_active = models.DateTimeField(
        _("last active"), help_text=_("When the last message was stored.")
    )
    expired_at = models.DateTimeField(_("expired at"), null=True, blank=True)
    message_counter = models.PositiveIntegerField(_("number of the last message"), default=0)
    total_tokens = models.PositiveBigIntegerField(_("total tokens"), default=0)
    window_start = models.PositiveIntegerField(_("first message of the history"), default=1)
    summarized_until = models.PositiveIntegerField(_("summarised up to"), default=0)
    promises_until = models.PositiveIntegerField(
        _("read for promises up to"), null=True, blank=True, editable=False
    )
    vectors_requested_at = models.DateTimeField(
        _("vectors requested at"), null=True, blank=True, editable=False
    )

    class Meta:
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        ordering = ["-last_active"]
        constraints = [
            models.UniqueConstraint(
                fields=["chat"],
                condition=Q(status=SessionStatus.ACTIVE),
                name="one_active_session_a_chat",
            ),
            known("status", SessionStatus, "session_status_known"),
            models.CheckConstraint(
                condition=Q(window_start__gte=1), name="session_window_from_one"
            ),
            models.CheckConstraint(
                condition=Q(status=SessionStatus.ACTIVE, expired_at__isnull=True)
                | Q(expired_at__isnull=False) & ~Q(status=SessionStatus.ACTIVE),
                name="ended_sessions_have_an_end",
            ),
        ]
        indexes = [
            models.Index(fields=["chat", "-created_at"]),
            models.Index(fields=["-last_active"]),
            # For pages of all sessions, in an order that never changes.
            models.Index(fields=["-created_at", "-session_id"]),
            # For the schedules: their queries stay fast among a million ended sessions.
            models.Index(
                fields=["last_active"],
                condition=Q(status=SessionStatus.ACTIVE),
                name="sessions_to_expire",
            ),
            models.Index(
                fields=["expired_at"],
                condition=Q(status=SessionStatus.EXPIRED),
                name="sessions_to_archive",
            ),
            models.Index(
                fields=["vectors_requested_at"],
                condition=Q(vectors_requested_at__isnull=False),
                name="sessions_with_vectors_due",
            ),
        ]

    def __str__(self) -> str:
        return str(self.session_id)

    def request_vectors(self, now: datetime) -> bool:
        """Note that vectors are to be made; return whether a job has to be enqueued for it.

        The caller has locked the row and saves it. A worker that makes vectors clears the request
        before it reads the messages, so that it includes all that were stored until then.
        """
        known = self.vectors_requested_at
        if known is not None and known > now - VECTORS_LOST_AFTER:
            return False
        self.vectors_requested_at = now
        return True

    @property
    def whatsapp_chat(self) -> str:
        return self.chat.whatsapp_chat


# The work of making the cards of sessions.


class CardWork(models.Model):
    """A request to make a session's card, or to make it again.

    ``token`` is new with every change to the session: a worker that made a card from the older
    state doesn't store it. ``due_at`` moves on with every failed attempt.
    """

    session = models.OneToOneField(
        ChatSession, CASCADE, verbose_name=_("session"), primary_key=True, related_name="card_work"
    )
    token = models.UUIDField(_("token"), default=uuid.uuid4)
    due_at = models.DateTimeField(_("due at"))
    attempts = models.PositiveIntegerField(_("attempts"), default=0)

    class Meta:
        verbose_name = _("card work")
        verbose_name_plural = _("card work")
        indexes = [models.Index(fields=["due_at"], name="cards_due")]

    def __str__(self) -> str:
        return f"card of {self.session_id}"


# Whether a session helped the person, by evidence.


class Verdict(models.TextChoices):
    HELPED = labelled("helped", _("Helped"))
    NOT_HELPED = labelled("not_helped", _("Not helped"))
    UNCLEAR = labelled("unclear", _("Can't tell"))


class Evidence(models.TextChoices):
    THANKS = labelled("thanks", _("said thanks"))
    LIKED = labelled("liked", _("liked an answer"))
    BOOKED = labelled("booked", _("a booking was confirmed"))
    SILENCE = labelled("silence", _("asked nothing more after an answer"))
    DENIED = labelled("denied", _("said that the answer was wrong, or none"))
    DISLIKED = labelled("disliked", _("disliked an answer"))
    REPEATED = labelled("repeated", _("asked the same again"))
    RETURNED = labelled("returned", _("came back within 24 hours with the same question"))
    HANDED_OVER = labelled("handed_over", _("was handed over to a person"))
    NOT_KNOWN = labelled("not_known", _("asked what wasn't known"))
    FAILED = labelled("failed", _("an answer failed"))
    SAID_YES = labelled("said_yes", _("said, when asked, that it helped"))
    SAID_NO = labelled("said_no", _("said, when asked, that it didn't help"))


class SessionOutcome(models.Model):
    """Whether an ended session helped.

    ``verdict``: by rules of version ``rules``, 0 where it is to be judged again. ``decided``: what
    staff decided against it, or "". ``in_force``: the one that counts. ``evidence``: a list of
    ``{"kind", "message_id", "at", "emoji"}`` in the order of time, the emoji that of a reaction.
    """

    session = models.OneToOneField(
        ChatSession, CASCADE, primary_key=True, related_name="outcome", verbose_name=_("session")
    )
    verdict = models.CharField(_("verdict"), max_length=16, choices=Verdict.choices)
    decided = models.CharField(
        _("decided by staff"), max_length=16, choices=Verdict.choices, blank=True, default=""
    )
    in_force = models.GeneratedField(
        verbose_name=_("verdict in force"),
        expression=Coalesce(NullIf("decided", Value("")), "verdict"),
        output_field=models.CharField(max_length=16, choices=Verdict.choices),
        db_persist=True,
    )
    evidence = models.JSONField(_("evidence"), default=list, blank=True)
    rules = models.PositiveSmallIntegerField(_("version of the rules"))
    ended_at = models.DateTimeField(_("ended at"))
    judged_at = models.DateTimeField(_("judged at"))

    class Meta:
        verbose_name = _("outcome of a session")
        verbose_name_plural = _("outcomes of sessions")
        default_permissions = ()
        indexes = [models.Index(fields=["-ended_at", "session"], name="outcomes_by_time")]

    def __str__(self) -> str:
        return f"outcome of {self.session_id}"
