"""Ask for a trial, and make it in a worker. Nothing is sent or learned."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.errors.stored_errors import ErrorText, error_text, named_error_text
from memoryproject.foundation.integrations.llm.base import (
    ChatModel,
    ChatModelError,
    ChatRequest,
    Completion,
)
from memoryproject.foundation.integrations.whatsapp.markdown import to_whatsapp
from memoryproject.foundation.leases import Lease, LeaseLostError
from memoryproject.foundation.outside_services.guards import deadline
from sessions_app.conversations import epochs
from sessions_app.conversations.history_queries import profile_current
from sessions_app.conversations.message_text import without_notice
from sessions_app.limits.answer_limits import MeteredChatModel
from sessions_app.models import AnswerTrial, Turn, TurnReplay
from sessions_app.models.chats import GODFATHER
from sessions_app.models.trials import TrialMemories, TrialPrompt, TrialState
from sessions_app.recall.facade import with_name
from sessions_app.trials.given_texts import (
    MAX_CHOSEN,
    Given,
    StoredPrompt,
    TrialBusyError,
    TrialRefusedError as TrialRefusedError,
    instructions_by,
    prompt_apart,
    prompt_together,
    role_now,
    texts_given,
)
from sessions_app.turns import facade as answers

# As many as can be read side by side; a further one takes the place of the oldest.
MAX_TRIALS = 3
MAX_INSTRUCTIONS = 20_000


@dataclass(frozen=True)
class TrialWanted:
    """The settings of a trial. ``system_text`` counts where the instructions are edited.

    ``given``: the recalled texts of a change that is tried, in the form of the replay record.
    """

    model: str
    memories: str = TrialMemories.THEN
    instructions: str = TrialPrompt.THEN
    system_text: str = ""
    chosen: Sequence[str] = field(default_factory=tuple)
    given: Sequence[dict[str, Any]] = field(default_factory=tuple)


def trial_check(*, turn: Turn, models: Sequence[str], is_draft: bool = False) -> None:
    """Check whether one of the models can try the answer again. Raises TrialRefusedError.

    ``is_draft``: a draft needs no answer before it.
    """
    if turn.by_hand:
        raise TrialRefusedError("trial_by_hand")
    if turn.message is None or turn.message.revoked_at is not None:
        raise TrialRefusedError("trial_no_question")
    if not is_draft:
        prompt_apart(TurnReplay.of(turn).prompt)
    if not models:
        raise TrialRefusedError("trial_no_key")


def trial_start(
    *,
    turn_id: int,
    trial_id: UUID,
    wanted: TrialWanted,
    user: User,
    actor: Actor,
    models: Sequence[str],
    enqueue: Callable[[UUID], object],
    now: datetime,
) -> AnswerTrial:
    """Store the trial and hand it to a worker.

    ``trial_id`` comes with the form: sent twice, it makes one trial. Raises TrialRefusedError and
    Turn.DoesNotExist.
    """
    with transaction.atomic():
        Turn.objects.select_for_update(no_key=True).get(pk=turn_id)
        turn = Turn.objects.select_related("message", "replay").get(pk=turn_id)
        known = AnswerTrial.objects.filter(pk=trial_id).first()
        if known is not None:
            if known.turn_id != turn.pk:
                raise TrialBusyError
            return known
        if turn.trials.filter(state=TrialState.WAITING).exists():
            raise TrialBusyError
        is_draft = wanted.memories == TrialMemories.DRAFT
        trial_check(turn=turn, models=models, is_draft=is_draft)
        _check(wanted, models)
        oldest = turn.trials.order_by("-created_at").values_list("pk", flat=True)
        AnswerTrial.objects.filter(pk__in=list(oldest[MAX_TRIALS - 1 :])).delete()
        trial = _trial_create(trial_id, turn, wanted, user, now)
        names = ("model", "memories", "instructions")
        action = "takeover.draft" if is_draft else "answer.try"
        answers.turn_audit(action, turn, actor, **{name: getattr(trial, name) for name in names})
        # Where the queue is down the sweep finds it.
        transaction.on_commit(lambda: enqueue(trial.pk), robust=True)
    return trial


def _trial_create(
    trial_id: UUID, turn: Turn, wanted: TrialWanted, user: User, now: datetime
) -> AnswerTrial:
    edited = wanted.instructions == TrialPrompt.EDITED
    return AnswerTrial.objects.create(
        trial_id=trial_id,
        turn=turn,
        model=wanted.model,
        memories=wanted.memories,
        instructions=wanted.instructions,
        system_text=wanted.system_text.strip() if edited else "",
        chosen=list(wanted.chosen) if wanted.memories == TrialMemories.CHOSEN else [],
        recalled=list(wanted.given),
        user=user,
        user_name=user.get_username(),
        created_at=now,
    )


def _check(wanted: TrialWanted, models: Sequence[str]) -> None:
    if wanted.model not in models:
        raise TrialRefusedError("trial_unknown_model", model=wanted.model[:100])
    if wanted.memories not in TrialMemories.values or len(wanted.chosen) > MAX_CHOSEN:
        raise TrialRefusedError("trial_incomplete")
    if wanted.instructions not in TrialPrompt.values:
        raise TrialRefusedError("trial_incomplete")
    if wanted.instructions == TrialPrompt.EDITED:
        text = wanted.system_text.strip()
        if not text or "\x00" in text:
            raise TrialRefusedError("trial_no_instructions")
        if len(text) > MAX_INSTRUCTIONS:
            raise TrialRefusedError("trial_long_instructions", most=f"{MAX_INSTRUCTIONS:,}")


# Make a trial: the worker's part.


logger = logging.getLogger(__name__)

# A trial whose worker died is made once more.
MAX_ATTEMPTS = 2


@dataclass(frozen=True)
class Made:
    """The answer of the model, and its input. ``error``: why no model wrote it."""

    completion: Completion
    instructions: str
    given: Given
    took_ms: int
    unseen_pictures: int
    error: str = ""


def trial_run(
    *,
    trial_id: UUID,
    dependencies: answers.Dependencies,
    model_named: Callable[[str], ChatModel | None],
) -> str:
    """Make a waiting trial and store it; return its state, "" where there is nothing to do.

    ``model_named`` returns the model of that name, or None where the settings don't allow it.
    """
    lease = _claim(trial_id)
    if lease is None:
        return ""
    try:
        return _run(lease, dependencies, model_named)
    except LeaseLostError as lost:
        logger.warning("%s", lost)
        return ""


def trials_abandoned(now: datetime) -> list[UUID]:
    """Return the trials that wait and that no worker holds."""
    waiting = AnswerTrial.objects.filter(state=TrialState.WAITING)
    return [trial.pk for trial in waiting.abandoned(now)]


def _claim(trial_id: UUID) -> Lease[AnswerTrial] | None:
    waiting = AnswerTrial.objects.filter(state=TrialState.WAITING)
    trial = waiting.filter(pk=trial_id).first()
    if trial is None:
        return None
    token = waiting.claim(trial, attempts=F("attempts") + 1)
    return Lease(trial, token) if token else None


def _run(
    lease: Lease[AnswerTrial],
    dependencies: answers.Dependencies,
    model_named: Callable[[str], ChatModel | None],
) -> str:
    trial = lease.row
    if trial.attempts >= MAX_ATTEMPTS:
        return _fail(lease, ErrorText("trial_ended"))
    turns = Turn.objects.select_related("chat", "session", "message", "replay")
    turn = turns.get(pk=trial.turn_id)
    owner = GODFATHER in (turn.user_role, role_now(turn, dependencies))
    epoch = epochs.epoch_read(epochs.Reader(turn.chat_id, sees_all=owner))
    try:
        with deadline(dependencies.rules.deadline.total_seconds()):
            made = _make(lease, turn, dependencies, model_named(trial.model))
        return _store(lease, epoch, made)
    except (TrialRefusedError, ChatModelError) as error:
        return _fail(lease, error_text(error))
    except epochs.ForgottenMeanwhileError:
        return _fail(lease, ErrorText("trial_forgotten"))
    except LeaseLostError:
        raise
    except Exception as error:
        logger.exception("A trial failed.")
        return _fail(lease, named_error_text(error))


def _make(
    lease: Lease[AnswerTrial],
    turn: Turn,
    dependencies: answers.Dependencies,
    chat_model: ChatModel | None,
) -> Made:
    """Ask the model. Raises TrialRefusedError and ChatModelError."""
    trial = lease.row
    if trial.memories == TrialMemories.DRAFT:
        return _draft(lease, turn, dependencies)
    if chat_model is None:
        raise TrialRefusedError("trial_unknown_model", model=trial.model)
    if turn.message is None or turn.message.revoked_at is not None:
        raise TrialRefusedError("trial_no_question")
    prompt = TurnReplay.of(turn).prompt
    pictures = answers.pictures_of_record(prompt, dependencies)
    stored = prompt_apart(prompt, pictures)
    given = texts_given(trial=trial, turn=turn, stored=stored, dependencies=dependencies)
    instructions = _instructions(trial, turn, stored, dependencies)
    messages = prompt_together(
        stored, fence=turn.turn_id.hex[:12], instructions=instructions, lines=given.lines
    )
    limit = dependencies.rules.max_context_tokens
    if limit is not None and sum(message.tokens for message in messages) > limit:
        raise TrialRefusedError("trial_long_prompt")
    request = ChatRequest(
        messages,
        recalled=[with_name(str(entry["content"]), entry) for entry in given.recalled],
        max_reply_tokens=dependencies.rules.max_reply_tokens,
    )
    metered = MeteredChatModel(
        chat_model,
        turn.chat_id,
        role_now(turn, dependencies) == GODFATHER,
        # A name without a price costs as much as the model that was asked for.
        replace(dependencies.limits, model=trial.model),
    )
    started = time.monotonic()
    completion = metered.complete(request, before_attempt=lease.renew)
    if completion.is_recital:
        completion = replace(completion, text=answers.recital(completion.text, turn.chat.language))
    took_ms = round((time.monotonic() - started) * 1000)
    unseen = sum(key not in pictures for key in answers.pictures_named(prompt))
    return Made(completion, instructions, given, took_ms, unseen)


def _draft(lease: Lease[AnswerTrial], turn: Turn, dependencies: answers.Dependencies) -> Made:
    """Make the reply that the assistant would give now. Raises TrialRefusedError."""
    if turn.message is None or turn.message.revoked_at is not None:
        raise TrialRefusedError("trial_no_question")
    turn.user_role = role_now(turn, dependencies)
    # The functions that a model may call change what is stored.
    rules = replace(dependencies.rules, model_tools=False)
    work = answers.TurnWork(turn, cast("Any", lease), replace(dependencies, rules=rules))
    pictures = answers.pictures_of(work) if rules.sees_pictures else []
    draft = answers.model_reply(work, turn.message.content, pictures)
    text = to_whatsapp(without_notice(draft.text))
    if draft.is_system_text:
        # Facts alone, without the words to the client that introduce them, or an apology.
        text = "" if draft.is_apology else without_notice(draft.text).partition("\n")[2]
    if not text.strip():
        raise TrialRefusedError("draft_nothing", why=draft.error)
    completion = Completion(text, draft.model, draft.prompt_tokens, draft.completion_tokens)
    took_ms = draft.timings["model_ms"]
    return Made(completion, "", Given([], draft.recalled), took_ms, 0, draft.error)


def _instructions(
    trial: AnswerTrial, turn: Turn, stored: StoredPrompt, dependencies: answers.Dependencies
) -> str:
    if trial.instructions == TrialPrompt.EDITED:
        return trial.system_text
    if trial.instructions == TrialPrompt.THEN:
        return stored.instructions
    return instructions_by(profile_current(), turn, stored, dependencies)


def _store(lease: Lease[AnswerTrial], epoch: epochs.EpochSnapshot, made: Made) -> str:
    """Store what was made. Raises ForgottenMeanwhileError and LeaseLostError."""
    completion = made.completion
    values: dict[str, Any] = {
        "state": TrialState.DONE,
        "text": completion.text,
        "system_text": made.instructions,
        "recalled": list(made.given.recalled),
        "answered_by": completion.model,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "unseen_pictures": made.unseen_pictures,
        "took_ms": made.took_ms,
        "error": made.error,
        "finished_at": timezone.now(),
    }
    with transaction.atomic():
        epochs.epoch_check(epoch)
        if not lease.release(**values):
            raise lease.lost()
    return str(TrialState.DONE)


def _fail(lease: Lease[AnswerTrial], error: str) -> str:
    """End the trial with an error. Raises LeaseLostError."""
    values = {"state": TrialState.FAILED, "error": error, "finished_at": timezone.now()}
    if not lease.release(**values):
        raise lease.lost()
    return str(TrialState.FAILED)
