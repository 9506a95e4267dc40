"""Rules of staff, what they did, and the marks that they set on conversations."""

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CASCADE, SET_NULL
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import labelled
from sessions_app.models.chats import Chat
from sessions_app.models.review import Label

MAX_MINUTES = 14 * 24 * 60
_MINUTES = (MinValueValidator(1), MaxValueValidator(MAX_MINUTES))


def _label(title: Any) -> Any:
    return models.ForeignKey(
        Label, SET_NULL, verbose_name=title, null=True, blank=True, related_name="+"
    )


class Happening(models.TextChoices):
    """What a rule waits for."""

    MESSAGE = labelled("message", _("a client writes"))
    NEW_CHAT = labelled("new_chat", _("somebody writes for the first time"))
    LABEL = labelled("label", _("a label is added"))
    SILENCE = labelled("silence", _("a client waits for an answer"))
    HANDOVER = labelled("handover", _("a conversation is handed over to a person"))
    UNANSWERED = labelled("unanswered", _("the assistant doesn't know the answer, or fails"))


class Rule(models.Model):
    """When something happens, if its conditions hold, then it acts, in the order of ``position``.

    ``words``: one phrase a line; the client's message holds one of them. ``since``: it acts on what
    happens from then on. ``given``: how many chats it has assigned by turn.
    """

    name = models.CharField(_("name"), max_length=60, unique=True)
    is_on = models.BooleanField(_("on"), default=True)
    position = models.PositiveSmallIntegerField(_("order"), default=10)
    when = models.CharField(_("when"), max_length=12, choices=Happening.choices)
    minutes = models.PositiveSmallIntegerField(
        _("minutes without an answer"), null=True, blank=True, validators=_MINUTES
    )
    label = _label(_("the label that is added"))
    words = models.TextField(
        _("words"),
        max_length=2_000,
        blank=True,
        help_text=_(
            "Only if the client's message holds one of these, as whole words: one word or phrase "
            "a line."
        ),
    )
    out_of_hours = models.BooleanField(_("only while we are closed"), default=False)
    add_label = _label(_("add the label"))
    assignees = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        verbose_name=_("assign to"),
        blank=True,
        related_name="+",
        help_text=_(
            "One person, or several by turn. By turn, conversations that are assigned already stay "
            "with whom they have."
        ),
    )
    tells = models.BooleanField(
        _("tell us"),
        default=False,
        help_text=_("Marks the conversation in the inbox, adds a note, and calls the webhooks."),
    )
    due_minutes = models.PositiveSmallIntegerField(
        _("answer due in minutes"), null=True, blank=True, validators=_MINUTES
    )
    text = models.TextField(
        _("send the text"),
        max_length=4_000,
        blank=True,
        help_text=_(
            "Not where the assistant is paused, in groups, or to those who said stop; and only "
            "within 24 hours of the client's last message."
        ),
    )
    template = models.CharField(
        _("send the template"),
        max_length=520,
        blank=True,
        help_text=_("Its name and language at Meta, such as we_are_back en; one without values."),
    )
    since = models.DateTimeField(_("in force since"), default=timezone.now, editable=False)
    given = models.PositiveIntegerField(_("assigned by turn"), default=0, editable=False)

    class Meta:
        verbose_name = _("rule")
        verbose_name_plural = _("rules")
        ordering = ["position", "id"]

    def __str__(self) -> str:
        return self.name


class RuleRun(models.Model):
    """A rule has acted on an event of a chat; without a rule: the away text was sent.

    ``event``: its kind and its time, without content. ``did``: the names of the actions.
    """

    chat = models.ForeignKey(Chat, verbose_name=_("chat"), on_delete=CASCADE, related_name="+")
    rule = models.ForeignKey(
        Rule, verbose_name=_("rule"), null=True, on_delete=CASCADE, related_name="runs"
    )
    event = models.CharField(_("event"), max_length=80)
    did = models.CharField(_("actions"), max_length=80, blank=True)
    at = models.DateTimeField(_("time"), default=timezone.now)

    class Meta:
        verbose_name = _("run of a rule")
        verbose_name_plural = _("runs of rules")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["chat", "rule", "event"], name="rule_once_an_event", nulls_distinct=False
            )
        ]
        indexes = [models.Index(fields=["at"], name="rule_runs_by_time")]

    def __str__(self) -> str:
        return f"{self.event} in {self.chat_id}"


class ChatMark(models.Model):
    """A mark in the inbox, until somebody of the business answers, or the chat is reviewed.

    ``rule_name``: the rule that tells of the chat. ``due_at``: when an answer is due.
    """

    chat = models.OneToOneField(
        Chat, verbose_name=_("chat"), primary_key=True, on_delete=CASCADE, related_name="mark"
    )
    rule_name = models.CharField(_("rule"), max_length=60, blank=True)
    due_at = models.DateTimeField(_("due at"), null=True, blank=True)

    class Meta:
        verbose_name = _("mark of a rule")
        verbose_name_plural = _("marks of rules")
        default_permissions = ()

    def __str__(self) -> str:
        return f"mark on {self.chat_id}"
