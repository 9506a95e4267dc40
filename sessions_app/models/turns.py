"""A turn: one answer to one inbound message."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import CASCADE, SET_NULL, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.choices import known, labelled
from memoryproject.foundation.errors.stored_errors import ErrorField
from memoryproject.foundation.leases import LeasedWork
from sessions_app.models.chats import Chat, Provider
from sessions_app.models.messages import Message
from sessions_app.models.sessions import ChatSession


class TurnState(models.TextChoices):
    """pending → running → replied → sending → sent.

    deferred: the answer failed for a cause outside, and is made when that is gone. The others end a
    turn early: missed (too old to answer), refused (a limit, or the chat isn't
    answered; the error says why), merged (answered with the next message of its burst), held
    (staff had paused the assistant), cancelled (the message was revoked), unconfirmed (it may have
    been sent), failed.
    """

    PENDING = labelled("pending", _("Pending"))
    RUNNING = labelled("running", _("Running"))
    REPLIED = labelled("replied", _("Replied"))
    SENDING = labelled("sending", _("Sending"))
    SENT = labelled("sent", _("Sent"))
    UNCONFIRMED = labelled("unconfirmed", _("Unconfirmed"))
    DEFERRED = labelled("deferred", _("Kept open"))
    MISSED = labelled("missed", _("Missed"))
    REFUSED = labelled("refused", _("Refused"))
    MERGED = labelled("merged", _("Merged"))
    HELD = labelled("held", _("Held"))
    CANCELLED = labelled("cancelled", _("Cancelled"))
    FAILED = labelled("failed", _("Failed"))


# The key of a turn's context for the provider's id of the message that a reply by staff quotes.
QUOTES = "quotes"
# The key of a turn's context for the name and the language of the template that it sends.
TEMPLATE = "template"
# The key of a turn's context for the id of the broadcast that it is a message of.
BROADCAST = "broadcast"
# There, and in its message's metadata: a rule wrote it, no person.
BY_RULE = "by_rule"
# The key of a turn's context for the kind of the file that a reply by staff sends.
SENDS_FILE = "sends_file"
# The key of a turn's context for how often its answer failed for a cause outside while the services
# worked for others. The person of a turn that has it got an apology.
DEFERRALS = "deferrals"
# The key of a turn's context for why its answer hands the conversation over to a person.
HANDOVER = "handover"
# There, for the ids of the rules whose words a message held whose text isn't kept.
RULES_MET = "rules_met"
# The key of the context of a turn that sends an apology, for the id of the turn that has no answer.
APOLOGY_FOR = "apology_for"
# The code of an error that was stored without one.
UNKNOWN_ERROR = "other"
WAITING_STATES = (TurnState.PENDING, TurnState.RUNNING, TurnState.REPLIED)
WRONG_STATES = (TurnState.FAILED, TurnState.UNCONFIRMED)
# States that may still be answered: a held turn is answered if staff say so.
ANSWERABLE_STATES = (*WAITING_STATES, TurnState.DEFERRED, TurnState.HELD)
# Staff filter by these states, or they are rare: lists of them use a separate index.
UNUSUAL_STATES = (
    TurnState.UNCONFIRMED,
    TurnState.MISSED,
    TurnState.REFUSED,
    TurnState.MERGED,
    TurnState.HELD,
    TurnState.DEFERRED,
    TurnState.CANCELLED,
    TurnState.FAILED,
)


class Outcome(models.TextChoices):
    """The way in which a turn ended for the person who wrote.

    answered: by the model, a command, a text of ours, or staff. from_memory: with what is
    remembered alone, because no model answered. refused: a limit, a block, WhatsApp's window or a
    switched-off memory forbids it. failed: an apology was sent, or nothing could be.

    A turn has none while it waits, and where its message has no answer of its own (merged, held,
    cancelled).
    """

    ANSWERED = labelled("answered", _("Answered"))
    FROM_MEMORY = labelled("from_memory", _("From memory"))
    REFUSED = labelled("refused", _("Refused"))
    FAILED = labelled("failed", _("Failed"))


def time_taken() -> models.expressions.CombinedExpression:
    """Return the time from the arrival of a message to the end of its turn, as an expression.

    The index "turns_by_duration" holds it for turns that were answered.
    """
    return models.F("finished_at") - models.F("created_at")


class Turn(LeasedWork):
    """One answer to one inbound message; a chat's turns are answered by rising ``id``.

    A worker owns a turn while it holds the lease; ``lease_token`` is new with every claim, so
    that a late worker can't write.

    ``state`` is assigned by the functions below only. The turn's ``TurnReplay`` records how the
    answer was made.

    ``session`` is null if memory is off. ``message`` is null then too, and if the message was
    deleted after the answer.

    ``by_hand``: staff wrote ``reply`` themselves, to no message in particular. The turn begins
    as ``replied``, and ``asked_at`` is when the person last wrote, or where no window holds (a
    template, Green API) when staff wrote.
    """

    turn_id = models.UUIDField(_("answer id"), unique=True, default=uuid.uuid4, editable=False)
    chat = models.ForeignKey(
        Chat, CASCADE, "turns", verbose_name=_("chat"), db_index=False
    )  # "turns_of_chat" serves
    session = models.ForeignKey(
        ChatSession, CASCADE, "turns", verbose_name=_("session"), null=True, blank=True
    )
    message = models.OneToOneField(
        Message, SET_NULL, verbose_name=_("message"), null=True, blank=True, related_name="turn"
    )
    reply = models.OneToOneField(
        Message,
        SET_NULL,
        verbose_name=_("reply"),
        null=True,
        blank=True,
        related_name="replied_turn",
    )
    provider = models.CharField(_("provider"), max_length=16, choices=Provider)
    number_id = models.CharField(_("our number"), max_length=64, blank=True)
    provider_message_id = models.CharField(_("provider message id"), max_length=255, blank=True)
    user_role = models.CharField(_("audience"), max_length=16, default="client")
    asked_at = models.DateTimeField(_("asked at"), help_text=_("When the message was written."))
    by_hand = models.BooleanField(
        _("by staff"), default=False, help_text=_("Staff wrote the answer.")
    )
    unstored_text = models.TextField(
        _("unstored text"),
        blank=True,
        help_text=_("The message, where memory is off; removed once it is answered."),
    )
    unstored_reply = models.TextField(
        _("unstored reply"),
        blank=True,
        help_text=_("The answer, where memory is off; removed once it is sent."),
    )
    context = models.JSONField(
        _("context"),
        default=dict,
        blank=True,
        help_text=_("The message's kind, and its session's end by /reset."),
    )

    state = models.CharField(
        _("state"), max_length=16, choices=TurnState, default=TurnState.PENDING
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    not_before = models.DateTimeField(_("not before"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    error = ErrorField(_("error"), blank=True)
    outcome = models.CharField(
        _("outcome"), max_length=16, choices=Outcome, blank=True, default="", db_default=""
    )

    class Meta:
        verbose_name = _("answer")
        verbose_name_plural = _("answers")
        ordering = ["-id"]
        permissions = [("rerun_turn", "Can run a failed turn again")]
        constraints = [
            known("state", TurnState, "turn_state_known"),
            # Two workers never answer in one chat at once, whatever the queue does.
            models.UniqueConstraint(
                fields=["chat"],
                condition=Q(state=TurnState.RUNNING),
                name="one_running_turn_a_chat",
            ),
        ]
        indexes = [
            models.Index(
                fields=["chat", "id"], condition=Q(state__in=WAITING_STATES), name="turns_waiting"
            ),
            models.Index(fields=["id"], condition=Q(state=TurnState.SENDING), name="turns_sending"),
            # For the failures since the last review, read without the turns' rows.
            models.Index(
                fields=["chat", "id"],
                include=["state", "finished_at", "created_at"],
                condition=Q(state__in=WRONG_STATES),
                name="turns_gone_wrong",
            ),
            models.Index(
                fields=["-id"], condition=Q(context__has_key=HANDOVER), name="turns_handed_over"
            ),
            models.Index(fields=["chat", "-id"], name="turns_of_chat"),
            # For figures and lists of a period.
            models.Index(fields=["created_at"], name="turns_by_time"),
            models.Index(fields=["chat", "created_at"], name="turns_of_chat_by_time"),
            models.Index(fields=["-id"], condition=Q(by_hand=True), name="turns_by_hand"),
            models.Index(fields=["provider"], name="turns_by_provider"),
            models.Index(
                time_taken().desc(), name="turns_by_duration", condition=Q(state=TurnState.SENT)
            ),
            models.Index(
                fields=["state", "-id"], condition=Q(state__in=UNUSUAL_STATES), name="turns_unusual"
            ),
        ]

    @property
    def ended_as(self) -> str | None:
        """The outcome; None where there is none."""
        return self.outcome or None

    @property
    def error_code(self) -> str | None:
        """The code of the error; None without one."""
        return (getattr(self.error, "code", "") or UNKNOWN_ERROR) if self.error else None

    def __str__(self) -> str:
        return str(_("Answer %(number)s (%(state)s)")) % {
            "number": self.id,
            "state": self.get_state_display(),
        }


# The replay record of an answer: all data that explains the answer.


# The ids of the memories from which an answer was made, and of those that it lists.
RECALLED_IDS = "jsonb_path_query_array(recalled, '$[*].id') || shown"


class TurnReplay(models.Model):
    """The replay record of a turn.

    ``prompt``: the messages sent to the model. ``recalled``: memories, messages and cards with
    their scores. ``shown``: the ids of the memories that the answer lists. ``left_out``: counts
    of texts that the token budget left out. ``timings`` are in milliseconds.

    The table is partitioned by the month of ``made_at`` (`sessions_app/partitions.py`). A
    new record replaces the earlier one of its turn, whatever month that is in.

    The row is stored with the answer. A turn without an answer has none: read it with
    ``TurnReplay.of``.
    """

    turn = models.OneToOneField(
        Turn, CASCADE, verbose_name=_("answer"), primary_key=True, related_name="replay"
    )
    prompt = models.JSONField(_("prompt"), default=list, blank=True)
    recalled = models.JSONField(_("recalled"), default=list, blank=True)
    shown = models.JSONField(_("shown"), default=list, blank=True)
    left_out = models.JSONField(_("left out"), default=dict, blank=True)
    summary = models.ForeignKey(
        Message, SET_NULL, "+", verbose_name=_("summary"), null=True, blank=True
    )
    model = models.CharField(_("model"), max_length=128, blank=True)
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"), null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(_("completion tokens"), null=True, blank=True)
    timings = models.JSONField(_("timings"), default=dict, blank=True)
    made_at = models.DateTimeField(_("made at"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("replay")
        verbose_name_plural = _("replays")
        # The permissions on a turn apply to its replay.
        default_permissions = ()
        indexes = [
            models.Index(fields=["model", "-turn"], condition=~Q(model=""), name="turns_by_model"),
            # Finds the answers that mentioned a memory, when it is forgotten.
            GinIndex(
                models.Func(models.F("recalled"), models.F("shown"), template=f"({RECALLED_IDS})"),
                name="turns_telling",
            ),
        ]

    def __str__(self) -> str:
        return f"replay of turn {self.turn_id}"

    @classmethod
    def of(cls, turn: Turn) -> "TurnReplay":
        """Return the turn's replay, an empty unsaved one if none is stored."""
        try:
            return turn.replay
        except cls.DoesNotExist:
            return cls(turn=turn)


# The turn's state machine: states, allowed transitions, and transition functions. Only these
# functions assign ``Turn.state``.

# Short, for the tables below.
S = TurnState
INITIAL_STATES: frozenset[str] = frozenset(
    {S.PENDING, S.REPLIED, S.HELD, S.MISSED, S.REFUSED, S.CANCELLED}
)

# docs/reference.md describes when each transition happens.
TRANSITIONS: Mapping[str, frozenset[str]] = {
    # A command that goes before a question is answered while the question is running.
    S.PENDING: frozenset(
        {S.RUNNING, S.MERGED, S.HELD, S.CANCELLED, S.REPLIED, S.SENDING, S.MISSED, S.REFUSED}
    ),
    S.RUNNING: frozenset(
        {
            S.PENDING,
            S.REPLIED,
            S.SENDING,
            S.DEFERRED,
            S.MISSED,
            S.REFUSED,
            S.MERGED,
            S.HELD,
            S.CANCELLED,
            S.FAILED,
        }
    ),
    S.REPLIED: frozenset({S.SENDING, S.SENT, S.UNCONFIRMED, S.REFUSED, S.CANCELLED, S.FAILED}),
    S.SENDING: frozenset({S.SENDING, S.REPLIED, S.SENT, S.UNCONFIRMED, S.REFUSED, S.FAILED}),
    S.UNCONFIRMED: frozenset({S.REPLIED, S.SENT, S.FAILED}),
    S.DEFERRED: frozenset({S.PENDING, S.HELD, S.CANCELLED, S.FAILED}),
    S.HELD: frozenset({S.PENDING, S.CANCELLED}),
    S.FAILED: frozenset({S.PENDING, S.REPLIED}),
    # Of a failed answer alone, whose caller asks again.
    S.SENT: frozenset({S.PENDING}),
    S.MISSED: frozenset(),
    S.REFUSED: frozenset(),
    S.MERGED: frozenset(),
    S.CANCELLED: frozenset(),
}


# With these states the outcome is given; with REPLIED whoever makes the answer says it.
OUTCOMES: Mapping[str, str] = {
    S.PENDING: "",
    S.MISSED: Outcome.REFUSED,
    S.REFUSED: Outcome.REFUSED,
    S.FAILED: Outcome.FAILED,
}


class TransitionError(Exception):
    """The turn can't enter this state, or another transaction moved it first.

    Nothing was written.
    """


def states_before(to: str) -> list[str]:
    """Return the states from which a turn may enter this one."""
    return [state for state, allowed in TRANSITIONS.items() if to in allowed]


def _with_outcome(state: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    given = {"outcome": OUTCOMES[state]} if state in OUTCOMES else {}
    return {"state": state, **given, **fields}


def turn_create(*, state: str, **fields: Any) -> Turn:
    """Store a new turn. Raises TransitionError for a state in which no turn begins."""
    if state not in INITIAL_STATES:
        raise TransitionError(f"No turn begins as {state}.")
    return Turn.objects.create(**_with_outcome(state, fields))


def turn_move(turn: Turn, to: str, **fields: Any) -> None:
    """Move a turn and store these fields with its state.

    Other changes of the object are not stored. Raises TransitionError.
    """
    known = turn.state
    if to not in TRANSITIONS[known]:
        raise TransitionError(f"Turn {turn.pk} can't go from {known} to {to}.")
    changes = _with_outcome(to, fields)
    this_turn = Turn.objects.filter(pk=turn.pk, chat=turn.chat_id, state=known)
    if not this_turn.update(**changes):
        raise TransitionError(f"Turn {turn.pk} is no longer {known}.")
    for name, value in changes.items():
        setattr(turn, name, value)


def turns_move(turns: QuerySet[Turn], to: str, **fields: Any) -> int:
    """Move those of the turns that may enter the state, by one conditional UPDATE.

    Returns how many. ``turns`` carries the other conditions, such as the lease.
    """
    return turns.filter(state__in=states_before(to)).update(**_with_outcome(to, fields))


def turns_restart(turns: QuerySet[Turn], **fields: Any) -> int:
    """Take from their workers those of the turns that are being answered: they are answered anew.

    Returns how many.
    """
    begun = turns.filter(Q(state=S.RUNNING) | Q(state=S.PENDING, lease_token__isnull=False))
    fields = {"lease_token": None, "lease_until": None, **fields}
    return begun.update(**_with_outcome(S.PENDING, fields))
