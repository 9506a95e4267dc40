"""Build the prompt that the chat model would get for an unsaved profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from memoryproject.foundation.integrations.llm.base import ChatMessage
from sessions_app.models import AssistantProfile
from sessions_app.models.chats import CLIENT, GODFATHER
from sessions_app.turns.facade import PromptParts, Recalled, build_prompt, profile_for_prompt
from sessions_app.turns.presentation import PromptLine, prompt_lines

KINDS: dict[str, Promise] = {
    CLIENT: gettext_lazy("a client"),
    GODFATHER: gettext_lazy("the owner"),
}
LANGUAGES: dict[str, Promise] = {
    "en": gettext_lazy("English"),
    "he": gettext_lazy("Hebrew"),
}
# Example content isn't interface text: it is in the chosen language.
QUESTIONS = {"en": "When are you open tomorrow?", "he": "מתי אתם פתוחים מחר?"}
MEMORIES = {
    "en": "They prefer to be called in the afternoon",
    "he": "מעדיפים שיתקשרו אליהם אחר הצהריים",
}
# Each real prompt has its own unguessable mark.
FENCE = "000000000000"


@dataclass(frozen=True)
class Preview:
    kind: str
    language: str
    lines: Sequence[PromptLine]
    tokens: int

    @property
    def whom(self) -> str:
        return str(KINDS[self.kind])


def prompt_preview(
    profile: AssistantProfile,
    *,
    kind: str,
    language: str,
    now: datetime,
    time_zone: str,
    max_context_tokens: int | None = None,
) -> Preview:
    """Return an example prompt with one memory and one question.

    Unknown kinds and languages are replaced by the first ones.
    """
    kind = kind if kind in KINDS else CLIENT
    language = language if language in QUESTIONS else "en"
    memory = Recalled(MEMORIES[language], "memory", now - timedelta(days=7))
    prompt = build_prompt(
        PromptParts(
            profile=profile_for_prompt(profile),
            now=now,
            time_zone=time_zone,
            fence=FENCE,
            user_role=kind,
            recalled=[memory],
            history=[ChatMessage("user", QUESTIONS[language])],
            max_context_tokens=max_context_tokens,
        )
    )
    entries = [message.as_dict() for message in prompt.messages]
    return Preview(kind, language, prompt_lines(entries, all_unfolded=True), prompt.tokens)
