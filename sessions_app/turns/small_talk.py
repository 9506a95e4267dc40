"""Answer greetings, thanks and requests for help where no model is configured."""

from __future__ import annotations

from memoryproject.foundation.integrations.llm.base import ChatModel
from memoryproject.foundation.integrations.llm.offline import OfflineChatModel
from sessions_app.conversations.facade import (
    profile_current,
    small_talk,
    text_for,
    without_mention,
)
from sessions_app.models import Turn
from sessions_app.turns.commands.dispatch import help_text
from sessions_app.turns.draft import Draft
from sessions_app.turns.turn_dependencies import Dependencies

ACKNOWLEDGED = "👍"


def is_offline(chat_model: ChatModel) -> bool:
    """Return whether no model is configured: answers are made from memory alone."""
    return chat_model.name == OfflineChatModel.name


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
        text=answer,
        is_system_text=True,
        uses_memory=False,
        model=dependencies.chat_model.name,
    )
