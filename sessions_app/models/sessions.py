"""A conversation's session: short-term memory ends with it."""

import uuid
from datetime import datetime, timedelta

from django.db import models
from django.db.models import CASCADE, Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

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
