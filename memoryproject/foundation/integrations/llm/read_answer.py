"""Read a chat completion: the only place where a model's answer enters.

What comes out has no thoughts in it and can be stored. The SDK doesn't check what it parses, so any
part may be missing or of another type.
"""

from __future__ import annotations

import math

from openai.types.chat import ChatCompletion

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.llm.base import Completion
from memoryproject.foundation.integrations.llm.thoughts import without_thoughts
from memoryproject.foundation.integrations.openai_api import unreadable_answer
from memoryproject.foundation.integrations.overflow import read_overflow
from memoryproject.foundation.integrations.retry import AttemptFailed
from memoryproject.foundation.text.storable import storable

# The width of the columns that hold a model's name.
MAX_MODEL_NAME = 128
# No model reads or writes as many at once: such a number says nothing, and would use up the limits
# of a day.
MAX_TOKENS = 100_000_000
# Other parts of a content are thoughts or files.
TEXT_PARTS = ("text", "output_text")


class EndedBeforeTextError(Exception):
    """The model thought, and ended before its answer began."""


def read_answer(answer: ChatCompletion, *, model: str) -> Completion:
    """Return the answer, for any finish reason.

    ``model``: the one that was asked; it counts where the answer names none. Raises AttemptFailed
    and EndedBeforeTextError.
    """
    overflow = read_overflow(200, getattr(answer, "error", None))
    if overflow is not None:
        raise AttemptFailed(ErrorText("model_too_long"), permanent=True, overflow=overflow)
    try:
        choice = answer.choices[0]
        written = _text_of(choice.message.content) or _text_of(choice.message.refusal)
    except (AttributeError, LookupError, TypeError):
        raise unreadable_answer() from None
    text = without_thoughts(storable(written))
    if not text.strip():
        if written.strip() or getattr(choice, "finish_reason", None) == "length":
            raise EndedBeforeTextError
        raise AttemptFailed(ErrorText("model_empty"))
    named: object = getattr(answer, "model", None)
    name = _one_line(named) if isinstance(named, str) else ""
    return Completion(
        text=text,
        model=(name or _one_line(model))[:MAX_MODEL_NAME],
        prompt_tokens=_read_count(answer, "prompt_tokens"),
        completion_tokens=_read_count(answer, "completion_tokens"),
    )


def _text_of(content: object) -> str:
    """Return a content's text; of one in parts, that of the parts that are text."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if part.get("type") in TEXT_PARTS]
        return "".join(text for text in texts if isinstance(text, str))
    if content is None or isinstance(content, str):
        return content or ""
    raise unreadable_answer()


def _one_line(name: str) -> str:
    return " ".join(storable(name).split())


def _read_count(answer: ChatCompletion, name: str) -> int | None:
    """Return a number of tokens; None where there is none that could be right."""
    count: object = getattr(getattr(answer, "usage", None), name, None)
    if isinstance(count, bool) or not isinstance(count, (int, float, str)):
        return None
    try:
        number = float(count)
    except (ValueError, OverflowError):
        return None
    return round(number) if math.isfinite(number) and 0 <= number <= MAX_TOKENS else None
