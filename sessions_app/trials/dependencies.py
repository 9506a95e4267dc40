"""The models that a trial may ask, by the settings, and the queue of trials."""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.integrations.configured import configured_chat_model, model_server
from memoryproject.foundation.integrations.llm.base import ChatModel
from memoryproject.foundation.process.jobs import enqueue
from memoryproject.foundation.process.narrowing import instance
from sessions_app.models import AnswerTrial, Turn
from sessions_app.trials.run_trial import TrialWanted, trial_start

OFFLINE = "offline"


def trial_models() -> list[str]:
    """Return the names of the models to choose from, that of the answers first.

    There are none without the key that OpenAI's own server needs.
    """
    if settings.CHAT_MODEL == OFFLINE:
        return [OFFLINE]
    if model_server().needs_key:
        return []
    return list(dict.fromkeys([settings.OPENAI_MODEL, *settings.COMPARISON_MODELS]))


def trial_model(name: str) -> ChatModel | None:
    """Return the model of this name, or None if trials may not ask it."""
    return configured_chat_model(name) if name in trial_models() else None


def enqueue_trial(trial_id: UUID) -> None:
    """Enqueue a trial. It never waits in front of an answer: it has the background's workers."""
    enqueue("sessions_app.tasks.run_trial", str(trial_id), task_name=f"try {trial_id}")


def trial_ask(
    request: HttpRequest,
    turn: Turn,
    wanted: TrialWanted,
    *,
    trial_id: UUID,
    models: Sequence[str] | None = None,
) -> AnswerTrial:
    """Start a trial for this staff member; raises as ``trial_start``."""
    return trial_start(
        turn_id=turn.pk,
        trial_id=trial_id,
        wanted=wanted,
        user=instance(request.user, User),
        actor=staff_actor(request),
        models=models or trial_models(),
        enqueue=enqueue_trial,
        now=timezone.now(),
    )
