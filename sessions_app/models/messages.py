"""A stored message, and its vectors."""

import uuid
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import CASCADE, SET_NULL, F, Func, Q, Value
from django.db.models.lookups import Exact, GreaterThan, IsNull
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from memoryproject.foundation.choices import known, labelled
from sessions_app.models.chats import Chat, Provider
from sessions_app.models.sessions import ChatSession

# The token in a provider's id of a message, which is the same whichever identity stands before
# it.


# Made by migration 0002, which says how an id is read.
FUNCTION = "sessions_app_message_token"


def message_token(message_id: Any) -> models.Func:
    """Return the token of an id, which is an expression; null where it has none."""
    return models.Func(message_id, function=FUNCTION, output_field=models.TextField())


def token_index(field: str, name: str) -> models.Index:
    """Return the index for ``has_token_of``."""
    return models.Index(
        message_token(F(field)), name=name, condition=Q(IsNull(message_token(F(field)), False))
    )


def has_token_of(field: str, message_id: str) -> Q:
    """Return the condition that an id has the same token as this id."""
    return Q(Exact(message_token(F(field)), message_token(Value(message_id))))


# In a stored message's metadata and a turn's context: the account id of the author, so that the
# name is removed with the account.
AUTHOR = "author_id"

# In the metadata of a message that somebody of the business typed on its phone.
BY_PHONE = "by_phone"
# The key of the metadata of a message that asks whether a session helped, by the session's id, and
# of the one that answers: the session's id, and whether it did.
SURVEY = "survey"

# In the metadata of a message that was moved in: what the other product said of it.
IMPORTED = "imported"

# In the metadata of a message: the people's reactions, and when the last of them changed.
REACTIONS, REACTED_AT = "reactions", "reacted_at"

# False in the metadata of a message: whoever stored it wants nothing learned from it.
LEARN = "learn"

# In the metadata of our text that says that there is no answer: no prompt shows it as one.
APOLOGY = "apology"

# In the metadata of a question of ours: the titles of what it offers to choose.
OFFERED = "choices"

# Among a message's terms: it asks for something, so that it may be a question asked before. No word
# is indexed so.
ASKING = "!asks"


class Role(models.TextChoices):
    USER = labelled("user", _("Client"))
    ASSISTANT = labelled("assistant", _("Assistant"))
    SYSTEM = labelled("system", _("System"))
    TOOL = labelled("tool", _("Tool"))
    SUMMARY = labelled("summary", _("Summary"))


class DeliveryStatus(models.TextChoices):
    """The delivery status of our message, from lowest to highest; failed is final."""

    SENT = labelled("sent", _("Sent"))
    DELIVERED = labelled("delivered", _("Delivered"))
    READ = labelled("read", _("Read"))
    PLAYED = labelled("played", _("Played"))
    FAILED = labelled("failed", _("Failed"))


class Message(models.Model):
    """One message.

    Its place is ``order_num``; timestamps never decide the order.

    ``content`` is stored unchanged. ``history`` holds the texts before an edit as
    ``[{"content", "until"}]``; a revoked message has neither content nor history.
    """

    message_id = models.UUIDField(
        _("message id"), primary_key=True, default=uuid.uuid4, editable=False
    )
    session = models.ForeignKey(ChatSession, CASCADE, "messages", verbose_name=_("session"))
    chat = models.ForeignKey(Chat, CASCADE, "messages", verbose_name=_("chat"))
    order_num = models.PositiveIntegerField(_("number"))
    role = models.CharField(_("role"), max_length=16, choices=Role)
    kind = models.CharField(_("kind"), max_length=32, default="text")
    content = models.TextField(_("content"), blank=True)
    sender = models.CharField(_("sender"), max_length=255, blank=True)
    recipient = models.CharField(_("recipient"), max_length=255, blank=True)
    timestamp = models.DateTimeField(_("written at"), help_text=_("According to the provider."))
    received_at = models.DateTimeField(
        _("received at"), default=timezone.now, help_text=_("When it was stored.")
    )
    tokens = models.PositiveIntegerField(_("tokens"))
    was_received = models.BooleanField(_("received"), default=True)
    delivery_status = models.CharField(
        _("delivery status"), max_length=16, choices=DeliveryStatus, blank=True, default=""
    )
    provider = models.CharField(
        _("provider"), max_length=16, choices=Provider, blank=True, default=""
    )
    number_id = models.CharField(_("our number"), max_length=64, blank=True, default="")
    provider_message_id = models.CharField(  # noqa: DJ001 null is outside the constraint
        _("provider message id"), max_length=255, null=True, blank=True
    )
    answers = models.OneToOneField(
        "self",
        SET_NULL,
        verbose_name=_("in reply to"),
        null=True,
        blank=True,
        related_name="answer",
        help_text=_("The message that this one replies to."),
    )
    image_path = models.CharField(_("image path"), max_length=1024, null=True, blank=True)  # noqa: DJ001 the glossary's null
    media = models.JSONField(_("media"), default=dict, blank=True)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)
    history = models.JSONField(_("history"), default=list, blank=True)
    edited_at = models.DateTimeField(_("edited at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True)
    terms = ArrayField(
        models.TextField(), verbose_name=_("terms"), default=list, blank=True, editable=False
    )
    term_count = models.PositiveIntegerField(_("term count"), default=0, editable=False)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ["session", "order_num"]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "order_num"], name="order_num_once_a_session"
            ),
            models.UniqueConstraint(
                fields=["provider", "number_id", "provider_message_id"],
                condition=Q(provider_message_id__isnull=False),
                name="provider_message_once",
            ),
            models.CheckConstraint(condition=Q(order_num__gte=1), name="order_num_from_one"),
            known("role", Role, "message_role_known"),
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=True) | Q(content="", history=[]),
                name="revoked_text_is_gone",
            ),
        ]
        indexes = [
            models.Index(fields=["chat", "session", "order_num"]),
            token_index("provider_message_id", "messages_by_token"),
            # For the figures of a period; staff's lists and their search for frequent words read
            # the newest first.
            models.Index(fields=["-received_at", "-order_num"], name="messages_by_time"),
            models.Index(fields=["chat", "received_at"], name="messages_of_chat_by_time"),
            # For what waits for staff: a reply by phone ends it.
            models.Index(
                fields=["chat", "received_at"],
                condition=Q(metadata__has_key=BY_PHONE),
                name="messages_by_phone",
            ),
            # For staff's filters on rare values; both never change.
            models.Index(fields=["provider", "role"], name="messages_by_provider"),
            models.Index(fields=["role"], name="messages_by_role"),
            # Every prompt looks for its session's summaries.
            models.Index(
                fields=["session", "-order_num"],
                condition=Q(role=Role.SUMMARY),
                name="summaries_of_session",
            ),
            # For staff's search for rare words, over all chats. It is an expression so that
            # recall, which stays within one chat, doesn't use it.
            GinIndex(OpClass(F("terms"), name="array_ops"), name="messages_by_word"),
        ]

    def __str__(self) -> str:
        return str(_("%(role)s, no. %(number)s")) % {
            "role": self.get_role_display(),
            "number": self.order_num,
        }

    @property
    def offered(self) -> list[str]:
        """Return the titles of the choices that it offers; others may store metadata, too."""
        titles = self.metadata.get(OFFERED)
        return [str(title) for title in titles] if isinstance(titles, list) else []


class MessageEmbedding(models.Model):
    """A message's vector for one model.

    Searched within one chat only: exactly, or where the chat is large by an index of each model
    (``memories_app.vector_search``).
    """

    message = models.ForeignKey(Message, CASCADE, "embeddings", verbose_name=_("message"))
    model = models.CharField(_("model"), max_length=128)
    vector = VectorField(_("vector"))

    class Meta:
        verbose_name = _("message embedding")
        verbose_name_plural = _("message embeddings")
        constraints = [
            models.UniqueConstraint(fields=["message", "model"], name="message_vector_once"),
            # A zero vector has no direction: its distance to any other is not a number.
            models.CheckConstraint(
                condition=GreaterThan(
                    Func("vector", function="vector_norm", output_field=models.FloatField()), 0.0
                ),
                name="message_vector_not_zero",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} of {self.message_id}"
