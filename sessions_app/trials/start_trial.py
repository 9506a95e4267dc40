"""Ask for a trial: a worker makes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app.models import AnswerTrial, Turn, TurnReplay
from sessions_app.models.trials import TrialMemories, TrialPrompt, TrialState
from sessions_app.trials.given_texts import (
    MAX_CHOSEN,
    TrialBusyError,
    TrialRefusedError,
    prompt_apart,
)

# As many as can be read side by side; a further one takes the place of the oldest.
MAX_TRIALS = 3
MAX_INSTRUCTIONS = 20_000


@dataclass(frozen=True)
class TrialWanted:
    """The settings of a trial. ``system_text`` counts where the instructions are edited."""

    model: str
    memories: str = TrialMemories.THEN
    instructions: str = TrialPrompt.THEN
    system_text: str = ""
    chosen: Sequence[str] = field(default_factory=tuple)


def trial_check(*, turn: Turn, models: Sequence[str]) -> None:
    """Check whether one of the models can try the answer again. Raises TrialRefusedError."""
    if turn.by_hand:
        raise TrialRefusedError("trial_by_hand")
    if turn.message is None or turn.message.revoked_at is not None:
        raise TrialRefusedError("trial_no_question")
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
        trial_check(turn=turn, models=models)
        _check(wanted, models)
        oldest = turn.trials.order_by("-created_at").values_list("pk", flat=True)
        AnswerTrial.objects.filter(pk__in=list(oldest[MAX_TRIALS - 1 :])).delete()
        trial = _store(trial_id, turn, wanted, user, now)
        _record(trial, actor)
        # Where the queue is down the sweep finds it.
        transaction.on_commit(lambda: enqueue(trial.pk), robust=True)
    return trial


def _store(
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
        user=user,
        user_name=user.get_username(),
        created_at=now,
    )


def _record(trial: AnswerTrial, actor: Actor) -> None:
    audit_record(
        action="answer.try",
        actor=actor,
        object_type="turn",
        object_id=trial.turn.turn_id,
        details={
            "model": trial.model,
            "memories": trial.memories,
            "instructions": trial.instructions,
        },
        chat_id=trial.turn.chat_id,
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
