"""Answers that are texts of ours: apologies, and what is said instead of an answer."""

from __future__ import annotations

from memoryproject.foundation.errors.stored_errors import ErrorText
from sessions_app.conversations.facade import text_for
from sessions_app.limits.facade import word_for
from sessions_app.models import Turn
from sessions_app.models.turns import Outcome
from sessions_app.turns.draft import Draft
from sessions_app.turns.turn_dependencies import Dependencies


def apology(turn: Turn, error: str) -> Draft:
    """Return the text for a message that gets no answer, with the error for staff."""
    draft = say("apology", turn, error=error, outcome=Outcome.FAILED)
    draft.is_apology = True
    return draft


def say(
    name: str, turn: Turn, *, error: str = "", outcome: str = Outcome.ANSWERED, **values: str
) -> Draft:
    """Return one of our texts as the answer."""
    text = text_for(name, turn.chat.language, **values)
    return Draft(text=text, is_system_text=True, error=error, outcome=outcome)


def notice_draft(name: str, turn: Turn, dependencies: Dependencies) -> Draft:
    """Return the system text that answers the message instead of the model."""
    limits = dependencies.limits
    words = limits.stop_words if name == "opted_in" else limits.start_words
    reason = turn.context.get("reason")
    error = ErrorText(reason) if reason else ""
    outcome = Outcome.REFUSED if reason else Outcome.ANSWERED
    word = word_for(turn.chat.language, words)
    return say(name, turn, error=error, outcome=outcome, word=word)
