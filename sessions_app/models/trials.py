"""Trials of answers, ratings, and the question set. Nothing of them reaches WhatsApp."""

import uuid

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import CASCADE, SET_NULL, Q
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import known, labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork
from sessions_app.models.chats import CLIENT, GODFATHER
from sessions_app.models.messages import Message
from sessions_app.models.turns import Turn

# The ids of the texts that a trial was given.
TRIED_IDS = "jsonb_path_query_array(recalled, '$[*].id')"


class TrialState(models.TextChoices):
    """A trial ends as done or as failed; ``error`` says why."""

    WAITING = labelled("waiting", _("Being made"))
    DONE = labelled("done", _("Made"))
    FAILED = labelled("failed", _("Failed"))


class TrialMemories(models.TextChoices):
    """The recalled texts that the model is given."""

    THEN = labelled("then", _("as recalled then"))
    NOW = labelled("now", _("as recalled now"))
    NONE = labelled("none", _("none"))
    CHOSEN = labelled("chosen", _("the ticked ones"))
    CHANGED = labelled("changed", _("with a change that is tried"))
    DRAFT = labelled("draft", _("as recalled now, for a draft of a reply"))


class TrialPrompt(models.TextChoices):
    """The instructions that the model is given before the remembered texts."""

    THEN = labelled("then", _("as then"))
    NOW = labelled("now", _("by the profile as it is now"))
    EDITED = labelled("edited", _("edited for this trial"))


class AnswerTrial(LeasedWork):
    """One trial of an answer: what was asked for, and what the model answered.

    A draft for staff who reply themselves is one, too: of ``memories`` DRAFT, and made anew as an
    answer is.

    ``chosen``: the ids of the ticked texts. ``system_text``: the instructions; those that were
    typed, or once it is made those that were used. ``recalled``: what the model was given, in the
    form of the replay record; of a change that is tried, what it is to be given.
    ``unseen_pictures``: how many pictures the answer's model saw and
    this one didn't. ``model`` was asked for; ``answered_by`` is what the server names.

    A trial is a throwaway: where anything in it is to be forgotten, the row is deleted.
    """

    trial_id = models.UUIDField(_("trial id"), primary_key=True, default=uuid.uuid4, editable=False)
    turn = models.ForeignKey(
        Turn, CASCADE, "trials", verbose_name=_("answer"), db_index=False
    )  # "trials_of_answer" serves
    state = models.CharField(
        _("state"), max_length=8, choices=TrialState, default=TrialState.WAITING
    )
    model = models.CharField(_("model"), max_length=128)
    memories = models.CharField(
        _("memories"), max_length=8, choices=TrialMemories, db_default=TrialMemories.THEN
    )
    instructions = models.CharField(_("instructions"), max_length=8, choices=TrialPrompt)
    chosen = models.JSONField(_("chosen texts"), default=list, blank=True)
    system_text = models.TextField(_("instruction text"), blank=True)
    text = models.TextField(_("text"), blank=True)
    recalled = models.JSONField(_("recalled"), default=list, blank=True)
    answered_by = models.CharField(_("answered by"), max_length=128, blank=True)
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"), null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(_("completion tokens"), null=True, blank=True)
    unseen_pictures = models.PositiveSmallIntegerField(_("pictures it was not shown"), default=0)
    took_ms = models.PositiveIntegerField(_("took (ms)"), null=True, blank=True)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    error = ErrorField(_("error"), blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, SET_NULL, "+", verbose_name=_("user"), null=True
    )
    user_name = models.CharField(_("user name"), max_length=150)
    created_at = models.DateTimeField(_("created at"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("answer trial")
        verbose_name_plural = _("answer trials")
        # The permissions on the turn apply.
        default_permissions = ()
        ordering = ["created_at"]
        constraints = [
            known("state", TrialState, "trial_state_known"),
            # Two clicks at once make one trial.
            models.UniqueConstraint(
                fields=["turn"],
                condition=Q(state=TrialState.WAITING),
                name="one_waiting_trial_an_answer",
            ),
        ]
        indexes = [
            models.Index(fields=["turn", "created_at"], name="trials_of_answer"),
            models.Index(fields=["created_at"], name="trials_by_time"),
            # Finds the trials that were given a memory, when it is forgotten.
            GinIndex(
                models.Func(models.F("recalled"), template=f"({TRIED_IDS})"), name="trials_telling"
            ),
        ]

    def __str__(self) -> str:
        return f"trial of turn {self.turn_id}"


# Ratings of answers by staff; nothing of them reaches WhatsApp or a model.


class RatingReason(models.TextChoices):
    """The reason of a bad rating. No typed text: it would quote the person, and need erasing."""

    WRONG = "wrong", _("It says something wrong")
    OUTDATED = "outdated", _("It was right once")
    UNKNOWN = "unknown", _("It doesn't know what it should")
    BESIDE = "beside", _("It doesn't answer the question")
    TELLS = "tells", _("It tells what it shouldn't")
    TONE = "tone", _("The tone or the language is wrong")
    PERSON = "person", _("A person should have answered")


class AnswerRating(models.Model):
    """A staff member's opinion of an answer: one of each, which may change.

    ``user_name`` outlives the account. ``is_open``: the answer is bad, and nobody has said since
    that it is resolved.
    """

    turn = models.ForeignKey(Turn, CASCADE, "ratings", verbose_name=_("answer"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, SET_NULL, "+", verbose_name=_("user"), null=True
    )
    user_name = models.CharField(_("user name"), max_length=150)
    is_good = models.BooleanField(_("good"))
    reason = models.CharField(_("reason"), max_length=16, choices=RatingReason, blank=True)
    is_open = models.BooleanField(_("open"))
    rated_at = models.DateTimeField(_("rated at"))

    class Meta:
        verbose_name = _("answer rating")
        verbose_name_plural = _("answer ratings")
        # The permissions on conversations apply.
        default_permissions = ()
        ordering = ["rated_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["turn", "user"], name="one_rating_a_user"),
            models.CheckConstraint(
                condition=Q(reason__in=["", *RatingReason.values]), name="rating_reason_known"
            ),
            models.CheckConstraint(
                condition=Q(is_good=False) | Q(is_open=False, reason=""), name="good_is_not_open"
            ),
        ]
        indexes = [
            models.Index(fields=["-turn"], condition=Q(is_open=True), name="ratings_open"),
            models.Index(fields=["is_good", "-turn"], name="ratings_by_kind"),
        ]

    def __str__(self) -> str:
        return f"rating of turn {self.turn_id}"


class AnswerResolved(models.Model):
    """Staff have resolved an answer that was to be reviewed."""

    turn = models.OneToOneField(
        Turn, CASCADE, verbose_name=_("answer"), primary_key=True, related_name="resolved"
    )
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, SET_NULL, "+", verbose_name=_("resolved by"), null=True
    )
    resolved_at = models.DateTimeField(_("resolved at"))

    class Meta:
        verbose_name = _("resolved answer")
        verbose_name_plural = _("resolved answers")
        default_permissions = ()

    def __str__(self) -> str:
        return f"turn {self.turn_id} is resolved"


# The question set: questions that have to be answered rightly, checked each day.


ASKERS = [(CLIENT, _("a client")), (GODFATHER, _("the owner"))]
LANGUAGES = [("en", _("English")), ("he", _("Hebrew"))]
ANSWER, TABLE = "answer", "table"
SOURCES = [(ANSWER, _("a right answer")), ("hand", _("by hand")), (TABLE, _("a table"))]


class QuestionState(models.TextChoices):
    """``OFF``: there is nothing that could be expected."""

    NEW = labelled("new", _("not checked yet"))
    PASSES = labelled("passes", _("passes"))
    FAILS = labelled("fails", _("fails"))
    OFF = labelled("off", _("nothing to expect"))


class CheckQuestion(models.Model):
    """A question of the set, and what must be recalled for it: a memory, or a text with words.

    ``message``: the person's question, with whose rights it is asked; it goes with it. Else
    ``text`` is asked in nobody's chat, as ``user_role``. ``expected``: the words. ``memory_id``:
    the memory. ``since``: when ``state`` began. ``passed_at``: when it passed last; None after an
    edit. ``recalled_then``, ``recalled_now``: the memories that were recalled when it passed last,
    and at the last check: [id, score] each, no texts.
    """

    message = models.OneToOneField(
        Message, verbose_name=_("message"), null=True, on_delete=CASCADE, related_name="+"
    )
    # It fits into an index.
    text = models.CharField(_("question"), max_length=500)
    expected = models.CharField(_("expected words"), max_length=200, blank=True)
    memory_id = models.UUIDField(_("expected memory"), null=True)
    user_role = models.CharField(_("audience"), max_length=16, choices=ASKERS, default=CLIENT)
    language = models.CharField(_("language"), max_length=8, choices=LANGUAGES, blank=True)
    source = models.CharField(_("source"), max_length=8, choices=SOURCES, default="hand")
    created_by = models.CharField(_("made by"), max_length=150, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    state = models.CharField(
        _("state"), max_length=8, choices=QuestionState.choices, default=QuestionState.NEW
    )
    since = models.DateTimeField(_("since"), null=True)
    passed_at = models.DateTimeField(_("passed last"), null=True)
    checked_at = models.DateTimeField(_("checked"), null=True)
    recalled_then = models.JSONField(_("recalled then"), default=list)
    recalled_now = models.JSONField(_("recalled now"), default=list)

    class Meta:
        verbose_name = _("question")
        verbose_name_plural = _("questions")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                Lower("text"),
                "user_role",
                condition=~Q(text=""),
                name="check_question_once",
                violation_error_message=_("This question is in the set already."),
            )
        ]

    def __str__(self) -> str:
        # Without people's words: the admin's own log keeps it.
        return f"{self._meta.verbose_name} {self.pk}"

    @property
    def asked(self) -> str:
        return self.message.content.strip() if self.message else self.text

    @property
    def chat_id(self) -> uuid.UUID | None:
        """Return the chat whose conversation the question shows, for the audit log."""
        return self.message.chat_id if self.message else None


# Questions that passed before and fail now.
# The rights of who may read the question set: its questions are those of people.
READS_QUESTIONS = (
    "sessions_app.view_chat",
    "sessions_app.view_message",
    "memories_app.view_memory",
)
REGRESSED = Q(state=QuestionState.FAILS, passed_at__isnull=False)


class CheckDay(models.Model):
    """How many questions of the set passed and failed in the last check of a day."""

    day = models.DateField(_("day"), primary_key=True)
    passed = models.PositiveIntegerField(_("passed"))
    failed = models.PositiveIntegerField(_("failed"))

    class Meta:
        verbose_name = _("day of checks")
        verbose_name_plural = _("days of checks")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.day)
