"""Keep questions open whose answer failed for a cause outside, and have them answered later.

The question's turn is ``deferred``; the apology goes out by a turn of its own. The sweep lets the
oldest questions be answered: one of them while a service is sick, which tries the service again,
and several once it works. Each that is answered lets the next ones follow. One that the service was
asked and failed to answer may be to blame: it waits twice as long each time, and tries a sick
service only where no other question waits.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, Q
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.leases import RELEASED
from memoryproject.foundation.outside_services.models import ServiceName, services_sick
from sessions_app.conversations.epochs import EpochSnapshot, epoch_check
from sessions_app.conversations.redact_derived import unstored_forget
from sessions_app.conversations.session_lifecycle import ANSWERING, turn_failed
from sessions_app.models import (
    InboundDelivery,
    Message,
    Outcome,
    Role,
    SessionStatus,
    Turn,
    TurnState,
)
from sessions_app.models.turns import (
    APOLOGY_FOR,
    BROADCAST,
    BY_RULE,
    DEFERRALS,
    QUOTES,
    turn_create,
    turn_move,
    turns_move,
)
from sessions_app.turns.reply_store import (
    Draft,
    message_store,
    parts_of,
    parts_store,
    replay_store,
    say,
)
from sessions_app.turns.turn_dependencies import Dependencies, TurnWork

logger = logging.getLogger(__name__)

# A question that fails so often while others are answered is to blame itself.
MAX_DEFERRALS = 20
# At most so many turns wait at once when questions are let in: new messages don't queue behind all
# that an outage has left.
MAX_AT_ONCE = 20
RETRY_AFTER = timedelta(seconds=15)
MAX_RETRY_AFTER = timedelta(minutes=4)
# The key of a turn's context for how often a service was asked and failed to answer it.
FAILURES = "failures"
# The code of the error of a question that no service was asked.
UNASKED = "service_paused"
ROWS_AT_ONCE = 100
# The services that an answer needs. One that nobody has called for longer isn't in use any more.
NEEDED = (ServiceName.CHAT_MODEL, ServiceName.TRANSCRIBER)
CALLED_WITHIN = timedelta(minutes=10)
# The database, not the message, was to blame.
CONNECTION_ERRORS = (OperationalError.__name__, InterfaceError.__name__)
# Not words of the conversation.
OF_OURS = ["command", "system_text", BROADCAST]
MESSAGE_CAME = "InboundMessage"
# An answer is made.
MADE = (TurnState.REPLIED, TurnState.SENDING, TurnState.SENT, TurnState.UNCONFIRMED)


def apology_draft(turn: Turn, error: str) -> Draft:
    """Return the apology for a turn that all tries failed to answer."""
    draft = say("apology", turn, error=error, outcome=Outcome.FAILED)
    draft.is_apology = True
    draft.is_outside = _fault_kind(error) in CONNECTION_ERRORS
    return draft


def _fault_kind(error: object) -> object:
    """Return the class of the fault that a stored error names."""
    params = getattr(error, "params", {})
    return params.get("kind") or (_fault_kind(params["why"]) if "why" in params else None)


def question_unanswered(work: TurnWork, draft: Draft, epoch: EpochSnapshot | None) -> Turn | None:
    """Store that a question has no answer; return the turn of the apology, if one is due.

    The apology's turn has the lease. Where the cause is outside, the question is kept open, else
    it has failed. The person gets one apology for each outage: none where a question of this chat
    is open already, and none at a retry.

    Raises LeaseLostError and ForgottenMeanwhileError, and then nothing is stored.
    """
    with transaction.atomic():
        if epoch is not None:
            epoch_check(epoch)
        turn = work.lease.lock_with_session()
        turn.chat = work.turn.chat
        held = {name: getattr(turn, name) for name in RELEASED}
        is_sick = _is_sick(timezone.now())
        failures = turn.context.get(DEFERRALS, 0) + (not is_sick)
        is_kept = draft.is_outside and failures <= MAX_DEFERRALS
        others = Turn.objects.filter(chat=turn.chat_id, state=TurnState.DEFERRED)
        is_told = DEFERRALS in turn.context or (is_kept and others.exists())
        tries = turn.context.get(FAILURES, 0)
        later = timezone.now()
        if getattr(draft.error, "code", "") != UNASKED:
            later += min(RETRY_AFTER * 2 ** min(tries, 9), MAX_RETRY_AFTER)
            tries += 1
        context = {**turn.context, DEFERRALS: failures if is_kept else 0, FAILURES: tries}
        changes = {"error": draft.error, "context": context, **RELEASED}
        if is_kept:
            turn_move(turn, TurnState.DEFERRED, not_before=later, **changes)
            if not is_told:
                turn_failed(turn, stage=ANSWERING)
        else:
            replay_store(turn, draft)
            turn_move(turn, TurnState.FAILED, finished_at=timezone.now(), **changes)
            _failed(turn)
        logger.warning("Turn %s has no answer: %s.", turn.turn_id, turn.state)
        if is_told:
            return None
        return _apology_store(turn, draft, work.dependencies, held)


def _apology_store(
    turn: Turn, draft: Draft, dependencies: Dependencies, held: dict[str, Any]
) -> Turn:
    stored: dict[str, Any] = {"unstored_reply": draft.text}
    if turn.session is not None:
        reply = message_store(turn, turn.session, draft, dependencies.chat_memory, answers=None)
        stored = {"reply": reply, "session": turn.session}
    context = {"kind": "text", APOLOGY_FOR: str(turn.turn_id), QUOTES: turn.provider_message_id}
    apology = turn_create(
        state=TurnState.REPLIED,
        chat=turn.chat,
        provider=turn.provider,
        number_id=turn.number_id,
        user_role=turn.user_role,
        asked_at=turn.asked_at,
        attempts=1,
        error=draft.error,
        outcome=draft.outcome,
        context=context,
        **stored,
        **held,
    )
    parts_store(apology, parts_of(draft, dependencies.providers[turn.provider]))
    return apology


def questions_resume(
    *, enqueue: Callable[[UUID], object], max_age: timedelta, now: datetime
) -> int:
    """Let open questions be answered, the oldest first; return how many.

    One that is too old, or after which something newer was said in its chat, ends as failed: it
    needs a person's attention.
    """
    resumed = 0
    is_sick = _is_sick(now)
    most = 1 if is_sick else _room()
    waiting = Turn.objects.filter(state=TurnState.DEFERRED).select_related("session", "message")
    waiting = waiting.annotate(failures=F(f"context__{FAILURES}"))
    fewest = F("failures").asc(nulls_first=True)
    # In turn while the service is sick: one that fails for itself must not be the trial.
    waiting = waiting.order_by(fewest, "not_before", "id") if is_sick else waiting.order_by("id")
    for turn in waiting.iterator(ROWS_AT_ONCE):
        if resumed >= most:
            break
        if now - turn.asked_at > max_age:
            _close(turn, "question_too_old")
        elif _is_overtaken(turn):
            # While the cause lasts it stays: with it the chat has its apology.
            if not is_sick:
                _close(turn, "question_overtaken")
        elif (turn.not_before or now) <= now:
            resumed += _resume(turn, enqueue)
    return resumed


def turn_followed_up(*, turn: Turn, enqueue: Callable[[UUID], object], max_age: timedelta) -> None:
    """Let the next questions follow one that was open and is answered after all."""
    if Turn.objects.filter(pk=turn.pk, state__in=MADE).exists():
        questions_resume(enqueue=enqueue, max_age=max_age, now=timezone.now())


def question_missed(turn: Turn) -> bool:
    """End a question that was open and is too old now; return whether it was open."""
    if DEFERRALS not in turn.context:
        return False
    _close(turn, "question_too_old")
    return True


def _close(turn: Turn, code: str) -> None:
    """End a turn that has no answer yet. ``code``: the error's."""
    among = (TurnState.DEFERRED, TurnState.RUNNING)
    ended = {"error": ErrorText(code), "finished_at": timezone.now(), **RELEASED}
    with transaction.atomic():
        same = Turn.objects.filter(pk=turn.pk, lease_token=turn.lease_token, state__in=among)
        if turns_move(same, TurnState.FAILED, **ended):
            _failed(turn)


def _failed(turn: Turn) -> None:
    turn_failed(turn, stage=ANSWERING)
    if turn.session_id is None:
        unstored_forget(turn)


def _resume(turn: Turn, enqueue: Callable[[UUID], object]) -> bool:
    """Put the question back in the queue, instead of an apology that isn't sent yet."""
    # With a time, it doesn't count as a message that nobody has taken up for long.
    changes: dict[str, Any] = {"attempts": 1, "error": "", "not_before": timezone.now()}
    with transaction.atomic():
        waiting = Turn.objects.filter(pk=turn.pk, state=TurnState.DEFERRED)
        if not turns_move(waiting, TurnState.PENDING, **changes):
            return False
        apologies = Turn.objects.filter(chat=turn.chat_id, state=TurnState.REPLIED)
        apologies = apologies.filter(**{f"context__{APOLOGY_FOR}": str(turn.turn_id)})
        turns_move(apologies, TurnState.CANCELLED, finished_at=timezone.now(), **RELEASED)
        # Where the queue is down the sweep finds it.
        transaction.on_commit(lambda: enqueue(turn.chat_id), robust=True)
    return True


def _room() -> int:
    """Return how many questions may be let in beside the turns that wait already."""
    waiting = Turn.objects.filter(state__in=[TurnState.PENDING, TurnState.RUNNING])
    return MAX_AT_ONCE - waiting[:MAX_AT_ONCE].count()


def _is_sick(now: datetime) -> bool:
    """Return whether a service that answers need is left alone at present."""
    sick = services_sick()
    return any(each.name in NEEDED and each.changed_at > now - CALLED_WITHIN for each in sick)


def _is_overtaken(turn: Turn) -> bool:
    """Return whether the person, staff or the owner have said something since, or it was reset."""
    message, session = turn.message, turn.session
    if session is None:
        # Memory is off: what was said isn't stored, but that it came is.
        came = InboundDelivery.objects.filter(chat=turn.chat_id, event=MESSAGE_CAME)
        written = Turn.objects.filter(chat=turn.chat_id, id__gt=turn.pk, by_hand=True)
        written = written.exclude(context__has_any_keys=[BROADCAST, BY_RULE])
        return came.filter(received_at__gt=turn.created_at).exists() or written.exists()
    if message is None or session.status != SessionStatus.ACTIVE:
        return True
    later = Q(session=session, order_num__gt=message.order_num)
    newer = Message.objects.filter(later | ~Q(session=session), chat=turn.chat_id)
    newer = newer.filter(received_at__gte=message.received_at, revoked_at=None)
    # What answers an earlier question may have been stored since.
    newer = newer.filter(role__in=[Role.USER, Role.ASSISTANT], answers=None)
    return newer.exclude(metadata__has_any_keys=OF_OURS).exists()
