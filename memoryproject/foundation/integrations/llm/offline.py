"""Answer without a language model: list what was recalled. The caller says why, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memoryproject.foundation.integrations.llm.base import ChatRequest, Completion
from memoryproject.foundation.integrations.retry import do_nothing
from memoryproject.foundation.text.characters import cut_at_word

MAX_MEMORIES = 5
MAX_MEMORY_LENGTH = 300


class OfflineChatModel:
    """A chat model that needs no server: it answers with ChatRequest.recalled alone."""

    name = "offline"

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> Completion:
        """See ChatModel.complete. Never fails by itself. The text is that of ``recited_lines``."""
        before_attempt()
        text = recited_lines(request.recalled)
        return Completion(text=text, model=self.name, is_recital=True)


def recited_lines(recalled: Sequence[str]) -> str:
    """Return the best of ``recalled`` (best first), each once and on a line of its own.

    At most MAX_MEMORIES lines of MAX_MEMORY_LENGTH characters; "" if nothing was recalled.
    """
    lines = (" ".join(text.split()) for text in recalled)
    distinct = list(dict.fromkeys(line for line in lines if line))[:MAX_MEMORIES]
    return "\n".join(f"• {cut_at_word(text, MAX_MEMORY_LENGTH)}" for text in distinct)
