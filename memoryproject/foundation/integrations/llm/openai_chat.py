"""The chat model for OpenAI and for every server with a compatible chat completions API."""

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations import retry
from memoryproject.foundation.integrations.llm import base, reading, server_traits, thoughts
from memoryproject.foundation.integrations.llm.openai_api import OpenAIConnection
from memoryproject.foundation.process.tracing import Span, model_span
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.characters import shows_nothing

# A model that thinks before it answers counts its thoughts, too. If they take all the room that
# an answer has, it gets so many times more.
ROOM_TO_THINK = 8
PATH = "/chat/completions"


class OpenAIChatModel:
    """Asks a model with POST {base_url}/chat/completions.

    What its server refuses of a request, and says so, is asked for in another form; the form that
    was accepted is kept in ``traits`` (see server_traits.py).

    api_key, base_url: may be empty (no key; OpenAI's own server). connection: what OpenAIConnection
    takes besides. extra_body: further parameters of each request. ``sleep`` waits between attempts,
    as ``delays`` say.
    """

    name = "openai"

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        model: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        delays: Sequence[float] = retry.DELAYS,
        traits: server_traits.TraitsStore | None = None,
        extra_body: Mapping[str, Any] | None = None,
        **connection: Any,
    ) -> None:
        """Raises ValueError for a base URL that isn't http(s)."""
        self._connection = OpenAIConnection(api_key, base_url, **connection)
        self._model = model
        self._sleep = sleep
        self._delays = delays
        self._traits = traits or server_traits.UnsharedTraits()
        self._extra_body = extra_body or {}

    def complete(
        self, request: base.ChatRequest, *, before_attempt: Callable[[], None] = retry.do_nothing
    ) -> base.Completion:
        """See ChatModel.complete."""
        with model_span("chat", self._model) as traced:
            try:
                completion, attempts = retry.call_with_retries(
                    lambda: self._ask(request),
                    sleep=self._sleep,
                    before_attempt=before_attempt,
                    delays=self._delays,
                )
            except retry.AttemptFailed as failure:
                raise base.ChatModelError.of(failure) from None
            _note(traced, completion)
        return replace(completion, attempts=attempts)

    def close(self) -> None:
        """Free the sockets."""
        self._connection.close()

    def _ask(self, request: base.ChatRequest) -> base.Completion:
        """Ask, and again in another form as long as the server's refusals name one."""
        known = traits = server_traits.Traits.of(self._traits.load())
        tried: list[server_traits.Traits] = []
        fits: int | None = None
        while True:
            tried.append(traits)
            room = server_traits.reply_room(request, traits, fits)
            try:
                completion = self._ask_in_form(request, traits, room)
            except retry.AttemptFailed as failure:
                other = None
                if failure.overflow is not None:
                    failure.overflow = failure.overflow.beside(room)
                    fits = server_traits.smaller_room(failure.overflow, request, room)
                    if fits is not None:
                        other = replace(traits, window=failure.overflow.window)
                elif failure.refused:
                    sent = server_traits.Sent.of(request, traits)
                    other = server_traits.learned_from(failure.words, sent, traits, tried)
                if other is None:
                    raise
                traits = other
            except reading.EndedBeforeTextError as ended:
                if request.max_reply_tokens is None or traits.room > 1 or not traits.reply_limit:
                    if ended.answer is not None:
                        completion = ended.answer
                        break
                    raise retry.AttemptFailed(ErrorText("model_only_thought")) from None
                # Kept at once: this wasn't a refusal, and such a model thinks each time.
                traits = replace(traits, room=ROOM_TO_THINK)
                self._traits.save(replace(known, room=ROOM_TO_THINK).record())
            else:
                break
        if traits != known:
            self._traits.save(traits.record())
        return completion

    def _ask_in_form(
        self, request: base.ChatRequest, traits: server_traits.Traits, room: int | None
    ) -> base.Completion:
        completion = self._connection.post(
            PATH,
            self._body(request, traits, room),
            lambda found: reading.read_answer(found, model=self._model),
        )
        names = {tool["function"]["name"] for tool in request.tools}
        if names:
            completion = with_calls_of_text(completion, names)
        text = thoughts.without_calls(completion.text)
        if shows_nothing(text) and not (names and completion.tool_calls):
            # It calls what nobody offered.
            raise retry.AttemptFailed(ErrorText("model_empty"))
        return replace(completion, text=text)

    def _body(
        self, request: base.ChatRequest, traits: server_traits.Traits, room: int | None
    ) -> dict[str, Any]:
        messages = [
            message.as_request() for message in server_traits.fitted(request.messages, traits)
        ]
        body: dict[str, Any] = {"model": self._model, "messages": messages}
        if request.answer_schema is not None and traits.answer_form != server_traits.PROMPT:
            body["response_format"] = _response_format(traits.answer_form, request.answer_schema)
        if room is not None:
            body[traits.reply_limit] = room
        if request.tools and not traits.no_tools:
            body["tools"] = [dict(tool) for tool in request.tools]
        if traits.streams:
            body["stream"] = True
        return {**body, **self._extra_body}


def _note(traced: Span, completion: base.Completion) -> None:
    """Note how the model ended, and the tokens that its server reports."""
    finish = "length" if completion.finish is base.Finish.CUT else "stop"
    traced.note(
        {"gen_ai.response.finish_reasons": ["tool_calls" if completion.tool_calls else finish]}
    )
    if completion.prompt_tokens is not None:
        traced.note({"gen_ai.usage.input_tokens": completion.prompt_tokens})
    if completion.completion_tokens is not None:
        traced.note({"gen_ai.usage.output_tokens": completion.completion_tokens})


def _response_format(form: str, schema: base.AnswerSchema) -> dict[str, Any]:
    if form == server_traits.JSON_OBJECT:
        return {"type": "json_object"}
    wanted = {"name": schema.name, "schema": dict(schema.schema), "strict": True}
    return {"type": "json_schema", "json_schema": wanted}


# Read the calls of functions that a server left in a model's text.

_TABLE = read_table(__file__, "calls.yaml")
_PAIRS = [re.compile(each, re.DOTALL) for each in _TABLE["pairs"]]
_CALLED = re.compile(_TABLE["called"], re.DOTALL)
_ALONE = re.compile(_TABLE["alone"], re.DOTALL)
MAX_OBJECTS = 20


def with_calls_of_text(completion: base.Completion, names: Collection[str]) -> base.Completion:
    """Return the answer with the calls that its text holds instead of an answer.

    ``names``: the functions that were offered; a text that names none of them stays.
    """
    text = completion.text
    if completion.tool_calls or not any(name in text for name in names):
        return completion
    calls = _calls_of_objects(text, names) or _calls_by_name(text, names)
    if not calls:
        return completion
    rest = thoughts.without_calls(text)
    given = [{"function": {"name": name, "arguments": found}} for name, found in calls]
    return replace(
        completion, text="" if rest == text else rest, tool_calls=reading.tool_calls_of(given)
    )


def _calls_of_objects(text: str, names: Collection[str]) -> list[tuple[str, Any]]:
    """Return the calls that are JSON objects, wherever they stand: the name and the arguments."""
    calls, place = [], 0
    for found, begin, end in _objects_in(text):
        name = next((found[key] for key in _TABLE["names"] if isinstance(found.get(key), str)), "")
        name = name.rpartition(".")[2]
        given = next((found[key] for key in _TABLE["arguments"] if key in found), None)
        if begin >= place and name in names and (given is not None or "_" in name):
            calls.append((name, given or {}))
            place = end
    return calls


def _calls_by_name(text: str, names: Collection[str]) -> list[tuple[str, Any]]:
    """Return the calls in other forms: a function's name, and its arguments behind it.

    A name of two words, such as search_memory, is no word of an answer.
    """
    listed = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    found = [
        each
        for each in re.finditer(rf"(?<![\w/])(?:functions?\.?)?({listed})(?:json)?(?!\w)", text)
        if "_" in each[1] or _CALLED.match(text, each.end())
    ]
    ends = [each.start() for each in found[1:]] + [len(text)]
    calls = [
        (each[1], _given(text[each.end() : end])) for each, end in zip(found, ends, strict=False)
    ]
    return [call for call in calls if call[1]] or calls[:1]


def _given(text: str) -> Any:
    """Return the arguments behind a function's name: an object, pairs, or one text."""
    pairs = ({name: value.strip() for name, value in each.findall(text)} for each in _PAIRS)
    alone = _ALONE.match(text)
    found = next((found for found, *_ in _objects_in(text)), None) or next(filter(None, pairs), {})
    return found or (json.dumps(alone[1]) if alone else {})


def _objects_in(text: str) -> Iterator[tuple[dict[str, Any], int, int]]:
    """Yield the first JSON objects within a text, with their places."""
    for begin in islice(re.finditer(r"\{", text), MAX_OBJECTS):
        try:
            found, end = json.JSONDecoder().raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        yield found, begin.start(), end
