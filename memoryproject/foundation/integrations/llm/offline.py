"""Answer without a language model: list the memories, and state that no model wrote the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from memoryproject.foundation.integrations.llm.base import ChatRequest, Completion
from memoryproject.foundation.integrations.retry import do_nothing
from memoryproject.foundation.text.characters import cut_at_word

Reason = Literal["not_configured", "unavailable"]

MAX_MEMORIES = 5
MAX_MEMORY_LENGTH = 300

_WITH_MEMORIES: dict[tuple[Reason, str], str] = {
    ("not_configured", "en"): (
        "No language model is configured, so I can't write a full answer. "
        "Here is what I remember that fits:"
    ),
    ("not_configured", "he"): (
        "לא הוגדר מודל שפה, ולכן אין כאן תשובה מלאה. זה מה ששמור בזיכרון בנושא הזה:"
    ),
    ("unavailable", "en"): (
        "I can't reach my language model right now, so this is not a full answer. "
        "Here is what I remember that fits:"
    ),
    ("unavailable", "he"): (
        "אין כרגע גישה למודל השפה, ולכן אין כאן תשובה מלאה. זה מה ששמור בזיכרון בנושא הזה:"
    ),
}

_WITHOUT_MEMORIES: dict[tuple[Reason, str], str] = {
    ("not_configured", "en"): (
        "No language model is configured, so I can only answer from what I remember, "
        "and nothing that I remember fits your message."
    ),
    ("not_configured", "he"): (
        "לא הוגדר מודל שפה, ולכן אפשר לענות רק ממה ששמור בזיכרון, ולא נמצא שם שום דבר "
        "שמתאים להודעה הזאת."
    ),
    ("unavailable", "en"): (
        "Sorry, I can't answer right now: I can't reach my language model, and nothing that "
        "I remember fits your message. Please try again in a few minutes."
    ),
    ("unavailable", "he"): (
        "מצטערים, אי אפשר לענות כרגע: אין גישה למודל השפה, ולא נמצא בזיכרון שום דבר שמתאים "
        "להודעה הזאת. כדאי לנסות שוב בעוד כמה דקות."
    ),
}


class OfflineChatModel:
    """A chat model that needs no server: it answers from ChatRequest.recalled alone."""

    name = "offline"

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> Completion:
        """See ChatModel.complete. Never fails by itself."""
        before_attempt()
        text = answer_from_memory(request.recalled, request.language, reason="not_configured")
        return Completion(text=text, model=self.name, is_recital=True)


def answer_from_memory(recalled: Sequence[str], language: str, *, reason: Reason) -> str:
    """Return an answer made of the best of ``recalled`` (best first), in English or Hebrew.

    language: "he" is Hebrew, anything else English.
    reason: why no model answers: none is configured, or it failed after its retries.

    Returns a text for WhatsApp: at most MAX_MEMORIES lines of MAX_MEMORY_LENGTH characters.
    """
    key: tuple[Reason, str] = (reason, "he" if language == "he" else "en")
    memories = _distinct_lines(recalled)[:MAX_MEMORIES]
    if not memories:
        return _WITHOUT_MEMORIES[key]
    return "\n".join(
        [_WITH_MEMORIES[key], *(f"• {cut_at_word(text, MAX_MEMORY_LENGTH)}" for text in memories)]
    )


def _distinct_lines(texts: Sequence[str]) -> list[str]:
    """Return each text on one line, in order, without blank texts and repetitions."""
    lines = (" ".join(text.split()) for text in texts)
    return list(dict.fromkeys(line for line in lines if line))
