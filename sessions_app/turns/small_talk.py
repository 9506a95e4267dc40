"""Answer where no model is configured, or none can be reached."""

from __future__ import annotations

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import ChatModel, OfflineChatModel
from sessions_app.conversations.facade import profile_current, small_talk, text_for, without_mention
from sessions_app.limits.facade import word_for
from sessions_app.models import Turn
from sessions_app.models.turns import Outcome
from sessions_app.turns.commands.dispatch import help_text
from sessions_app.turns.reply_store import Draft
from sessions_app.turns.turn_dependencies import Dependencies

ACKNOWLEDGED = "👍"


def is_offline(chat_model: ChatModel) -> bool:
    """Return whether no model is configured: answers are made from memory alone."""
    return chat_model.name == OfflineChatModel.name


def recital(lines: str, language: str, heading: str = "recital") -> str:
    """Return an answer that is made of recalled texts alone, one on each of ``lines``.

    heading: the name of the text before them.
    """
    return (
        f"{text_for(heading, language)}\n{lines}" if lines else text_for("recital_none", language)
    )


def small_talk_reply(turn: Turn, text: str, dependencies: Dependencies) -> Draft | None:
    """Return the answer to small talk, in its language; None for every other message."""
    if turn.chat.is_group:
        text = without_mention(text)
    profile = profile_current()
    talk = small_talk(text, name=profile.name, language=turn.chat.language)
    if talk is None:
        return None
    kind, language = talk
    name = profile.name
    if profile.business_name:
        name = f"{name} ({profile.business_name})" if name else profile.business_name
    if kind == "acks":
        answer = ACKNOWLEDGED
    elif kind == "thanks":
        answer = text_for("welcome", language)
    elif kind == "greeting" and name:
        answer = text_for("greeting", language, assistant=name)
    else:
        answer = text_for(help_text(turn, dependencies), language)
    return Draft(
        text=answer, is_system_text=True, uses_memory=False, model=dependencies.chat_model.name
    )


# Answers that are texts of ours: apologies, and what is said instead of an answer.


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
