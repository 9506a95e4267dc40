"""Build the dependencies of message intake from the settings."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings

from memoryproject.foundation.process import built_once, jobs
from sessions_app.conversations.session_lifecycle import enqueue_rules
from sessions_app.extraction.dependencies import enqueue_learning, is_learning_enabled
from sessions_app.history.dependencies import build_chat_memory
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.limits.dependencies import build_usage_limits
from sessions_app.media.dependencies import media_request
from sessions_app.turns.dependencies import max_answer_age


@built_once.built_once
def build_intake_rules() -> IntakeRules:
    """Return the rules; each webhook and each call of the API asks for them."""
    learns_history = settings.LEARN_FROM_HISTORY and is_learning_enabled()
    return IntakeRules(
        memory_enabled=settings.ENABLE_MEMORY_SYSTEM,
        chat_memory=build_chat_memory(),
        session_timeout=timedelta(hours=settings.SESSION_TIMEOUT_HOURS),
        max_answer_age=max_answer_age(),
        group_policy=settings.GROUP_POLICY,
        limits=build_usage_limits(),
        missed_call_text=settings.MISSED_CALL_TEXT,
        learn_history=enqueue_learning if learns_history else None,
        fetch_media=media_request,
        redact=enqueue_redaction,
        pause_after_reply=timedelta(minutes=settings.OWNER_PAUSE_MINUTES),
        look_at=enqueue_rules,
        surveys=settings.SURVEY_DAYS > 0,
    )


def enqueue_redaction(chat_id: UUID) -> None:
    """Enqueue a chat in which texts are still to be redacted."""
    jobs.enqueue("sessions_app.tasks.redact_chat", str(chat_id), task_name=f"redact {chat_id}")
