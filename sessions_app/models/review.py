"""Internal work of staff on conversations; nothing of it reaches WhatsApp or a model."""

import uuid
from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CASCADE, SET_NULL, Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import known, labelled
from sessions_app.models.chats import Chat
from sessions_app.models.messages import Message

MAX_NOTE_LENGTH = 10_000


class UpTo(models.Model):
    """A position in a chat: the start and id of a session, and the order_num of a message in it.

    Plain values: they keep their meaning when the message is forgotten.
    """

    began_at = models.DateTimeField(_("began at"))
    session_key = models.UUIDField(_("session key"))
    order_num = models.PositiveIntegerField(_("number of the message"))

    class Meta:
        abstract = True


class ReadMark(UpTo):
    """Read marker: the last message of a chat that a staff member has seen."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, CASCADE, "+", verbose_name=_("user"))
    chat = models.ForeignKey(Chat, CASCADE, "read_marks", verbose_name=_("chat"))

    class Meta:
        verbose_name = _("read marker")
        verbose_name_plural = _("read markers")
        constraints = [
            models.UniqueConstraint(fields=["user", "chat"], name="one_read_mark_a_user")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.chat_id}"


class ReviewedMark(UpTo):
    """The last message of a chat that was reviewed; later messages are not reviewed.

    ``reviewed_at``: when the page was made on which the chat was reviewed. An answer that
    failed later wasn't seen, though it may add no message.
    """

    chat = models.OneToOneField(
        Chat, CASCADE, verbose_name=_("chat"), primary_key=True, related_name="reviewed"
    )
    reviewed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, SET_NULL, "+", verbose_name=_("reviewed by"), null=True
    )
    reviewed_at = models.DateTimeField(_("reviewed at"))

    class Meta:
        verbose_name = _("review marker")
        verbose_name_plural = _("review markers")

    def __str__(self) -> str:
        return f"review of {self.chat_id}"


class Bookmark(models.Model):
    """A staff member's bookmark on a chat or on one message of it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, CASCADE, "+", verbose_name=_("user"))
    chat = models.ForeignKey(Chat, CASCADE, "bookmarks", verbose_name=_("chat"))
    message = models.ForeignKey(
        Message, CASCADE, "bookmarks", verbose_name=_("message"), null=True, blank=True
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("bookmark")
        verbose_name_plural = _("bookmarks")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "chat"],
                condition=Q(message__isnull=True),
                name="one_bookmark_a_chat",
            ),
            models.UniqueConstraint(
                fields=["user", "message"],
                condition=Q(message__isnull=False),
                name="one_bookmark_a_message",
            ),
        ]

    def __str__(self) -> str:
        return f"bookmark of {self.user_id} in {self.chat_id}"


class LabelColour(models.TextChoices):
    GREEN = "green", _("Green")
    BLUE = "blue", _("Blue")
    VIOLET = "violet", _("Violet")
    RED = "red", _("Red")
    AMBER = "amber", _("Amber")
    GREY = "grey", _("Grey")


class Label(models.Model):
    """A name for a kind of conversation, shared by all staff."""

    name = models.CharField(_("name"), max_length=40)
    colour = models.CharField(
        _("colour"), max_length=8, choices=LabelColour, default=LabelColour.GREEN
    )

    class Meta:
        verbose_name = _("label")
        verbose_name_plural = _("labels")
        ordering = [Lower("name")]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="label_once",
                violation_error_message=_("There is a label of this name already."),
            ),
            known("colour", LabelColour, "label_colour_known"),
        ]

    def __str__(self) -> str:
        return self.name


class ChatLabel(models.Model):
    """The assignment of a label to a chat."""

    chat = models.ForeignKey(Chat, CASCADE, "chat_labels", verbose_name=_("chat"))
    label = models.ForeignKey(Label, CASCADE, "chat_labels", verbose_name=_("label"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("chat label")
        verbose_name_plural = _("chat labels")
        constraints = [models.UniqueConstraint(fields=["chat", "label"], name="label_once_a_chat")]

    def __str__(self) -> str:
        return f"{self.label_id} on {self.chat_id}"


class Note(models.Model):
    """An internal note of staff about a chat or about one message of it.

    ``author_name`` outlives the account. A note stays if its message is deleted because it was
    summed up; it is erased if the message is forgotten.
    """

    note_id = models.UUIDField(_("note id"), primary_key=True, default=uuid.uuid4, editable=False)
    chat = models.ForeignKey(Chat, CASCADE, "notes", verbose_name=_("chat"))
    message = models.ForeignKey(
        Message, SET_NULL, "notes", verbose_name=_("message"), null=True, blank=True
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, SET_NULL, "+", verbose_name=_("author"), null=True
    )
    author_name = models.CharField(_("author name"), max_length=150)
    text = models.TextField(_("text"))
    created_at = models.DateTimeField(_("created at"))
    edited_at = models.DateTimeField(_("edited at"), null=True, blank=True)

    class Meta:
        verbose_name = _("note")
        verbose_name_plural = _("notes")
        ordering = ["-created_at", "note_id"]
        indexes = [models.Index(fields=["chat", "-created_at"], name="notes_of_a_chat")]

    def __str__(self) -> str:
        return f"note on {self.chat_id}"


class Assignment(models.Model):
    """The staff member responsible for a chat."""

    chat = models.OneToOneField(
        Chat, CASCADE, verbose_name=_("chat"), primary_key=True, related_name="assignment"
    )
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, CASCADE, "+", verbose_name=_("assignee"))
    assigned_at = models.DateTimeField(_("assigned at"))

    class Meta:
        verbose_name = _("assignment")
        verbose_name_plural = _("assignments")

    def __str__(self) -> str:
        return f"{self.chat_id} to {self.assignee_id}"


class Snooze(models.Model):
    """A conversation that staff put off until a time.

    It is in force until ``until``, or until the person writes after ``since``, the time when the
    page was made on which it was put off. Afterwards the row keeps the conversation open, until it
    is reviewed.
    """

    chat = models.OneToOneField(
        Chat, CASCADE, verbose_name=_("chat"), primary_key=True, related_name="snooze"
    )
    since = models.DateTimeField(_("since"))
    until = models.DateTimeField(_("until"))
    snoozed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, SET_NULL, "+", verbose_name=_("snoozed by"), null=True
    )

    class Meta:
        verbose_name = _("snooze")
        verbose_name_plural = _("snoozes")
        default_permissions = ()

    def __str__(self) -> str:
        return f"snooze of {self.chat_id}"


# Filters of the inbox that staff keep under a name.

MAX_FILTER_NAME = 40
MAX_FILTER_QUERY = 500


class SavedFilter(models.Model):
    """Filters of the inbox under a name: one's own, or shared with all staff.

    ``query`` is the query string of the inbox, in one fixed order and without search words, which
    may name a person.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, CASCADE, "+", verbose_name=_("user"))
    name = models.CharField(_("name"), max_length=MAX_FILTER_NAME)
    query = models.CharField(_("filters"), max_length=MAX_FILTER_QUERY)
    is_shared = models.BooleanField(_("shared"), default=False)

    class Meta:
        verbose_name = _("saved filter")
        verbose_name_plural = _("saved filters")
        ordering = [Lower("name"), "pk"]
        constraints = [models.UniqueConstraint("user", Lower("name"), name="saved_filter_once")]
        indexes = [
            models.Index(
                fields=["id"], condition=models.Q(is_shared=True), name="saved_filters_shared"
            )
        ]

    def __str__(self) -> str:
        return self.name


# Rules of staff, what they did, and the marks that they set on conversations.

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
