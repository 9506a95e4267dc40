"""A chat model with scripted answers, for tests and demos."""

import threading
from collections.abc import Callable, Iterable

from memoryproject.foundation.integrations.llm.base import ChatRequest, Completion
from memoryproject.foundation.integrations.retry import do_nothing

Answer = str | Completion
Script = Callable[[ChatRequest], Answer] | Iterable[Answer | Exception]


class ScriptedChatModel:
    """Answers by a function of the request, or from a list, one entry a call.

    Exceptions in the list are raised, and so are those of the function (a ChatModelError simulates
    a model that failed after its retries). ``requests`` keeps every request, oldest first. Safe to
    share between threads.
    """

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        self.name = name
        self.requests: list[ChatRequest] = []
        self._lock = threading.Lock()
        self._function = script if callable(script) else None
        self._answers = iter(()) if callable(script) else iter(script)

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> Completion:
        """See ChatModel.complete.

        Raises LookupError when the list has no answer left: this is an error in the script, and no
        caller may mistake it for a model's failure.
        """
        before_attempt()
        with self._lock:
            self.requests.append(request)
            answer = self._next_in_list() if self._function is None else None
        if self._function is not None:
            # Outside the lock: the function may wait for another call.
            answer = self._function(request)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Completion) else self._completion(request, str(answer))

    def _next_in_list(self) -> Answer | Exception:
        for answer in self._answers:
            return answer
        raise LookupError("The script has no answer left")

    def _completion(self, request: ChatRequest, text: str) -> Completion:
        """Return the completion; words count as tokens, so that callers have numbers to store."""
        prompt_tokens = sum(len(message.content.split()) for message in request.messages)
        return Completion(
            text=text,
            model=self.name,
            prompt_tokens=prompt_tokens,
            completion_tokens=len(text.split()),
        )
