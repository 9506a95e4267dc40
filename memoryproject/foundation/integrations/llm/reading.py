"""Read a chat completion: the only place where a model's answer enters. Pure."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.context_limit import read_overflow
from memoryproject.foundation.integrations.lenient import Fields
from memoryproject.foundation.integrations.llm.base import Completion, Finish, ToolCall
from memoryproject.foundation.integrations.llm.thoughts import without_thoughts
from memoryproject.foundation.integrations.retry import AttemptFailed
from memoryproject.foundation.text.characters import shows_nothing, storable

# The width of the columns that hold a model's name.
MAX_MODEL_NAME = 128
# No model reads or writes as many at once: such a number says nothing, and would use up the limits
# of a day.
MAX_TOKENS = 100_000_000
# Other parts of a content are thoughts or files.
TEXT_PARTS = ("text", "output_text")
# They turn all that follows around.
OVERRIDES = {0x202D: None, 0x202E: None}
# Where servers put thoughts that they have split off.
THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")
# How many words of an answer that isn't one staff see.
MAX_QUOTED = 200
# What servers call the end at the limit of length, and by a filter of content.
CUT_REASONS = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
FILTER_REASONS = frozenset({"content_filter", "safety", "recitation", "prohibited_content"})
FILTER_CODES = frozenset(
    {"content_filter", "responsibleaipolicyviolation", "content_policy", "data_inspection_failed"}
)
FILTER_WORDS = re.compile(
    r"content (?:management )?polic(?:y|ies)|content[ _-]filter|data_?inspection"
    r"|flagged by|safety (?:system|filter|polic)|moderation",
    re.IGNORECASE,
)
# What a gateway says in the place of an answer.
ERROR_TEXT = re.compile(
    r"(?i)\W{0,3}(?:(?:\w{0,20}error|exception)(?: code)?:|upstream\b).{0,80}"
    r"(?:rate.?limit|upstream|provider|quota|overloaded|timed? ?out|api.?key|service unavailable"
    r"|[\"']error)"
)
# As of HTTP: the same request may succeed later.
RETRIED = frozenset({408, 409, 425, 429})
REFUSED = frozenset({400, 404, 413, 415, 422, 501})


class EndedBeforeTextError(Exception):
    """The model thought, and ended before its answer began.

    ``answer``: what it had written by then, where it had written something.
    """

    def __init__(self, answer: Completion | None = None) -> None:
        super().__init__("ended before text")
        self.answer = answer


def read_answer(body: bytes, *, model: str) -> Completion:
    """Return the answer in the body of a response, be it JSON or a stream of events.

    ``model``: the one that was asked; it counts where the answer names none. Raises AttemptFailed
    and EndedBeforeTextError.
    """
    answer = Fields.of(json_of(body))
    if not answer.get("choices"):
        raise failure_of(answer, body)
    choice = answer.objects("choices")[0]
    if error := choice.at("error"):
        raise failure_in(error, body)
    # The older form of an answer, that of completions, has its text alone.
    message = choice.at("message") or Fields.of({"content": choice.text("text")})
    if not any(message.values()):
        raise unreadable(body)
    written = _text_of(_parts(message.get("content")), body) or _text_of(
        message.get("refusal"), body
    )
    written = storable(written).translate(OVERRIDES)
    text = without_thoughts(written)
    reason = str(choice.get("finish_reason") or "").lower()
    finish = Finish.CUT if reason in CUT_REASONS else Finish.WHOLE
    if len(text) <= MAX_QUOTED and ERROR_TEXT.match(text):
        raise failure_in(Fields.of({"error": {"message": text}}), body)
    if reason in FILTER_REASONS:
        raise filtered()
    calls = tool_calls_of(message.get("tool_calls"))
    thought = text != written or any(message.get(name) for name in THOUGHT_FIELDS)
    if shows_nothing(text) and not calls:
        if thought or finish is Finish.CUT:
            raise EndedBeforeTextError
        raise AttemptFailed(ErrorText("model_empty"))
    name = _one_line(answer.text("model"))
    usage = answer.at("usage")
    completion = Completion(
        text=text,
        model=(name or _one_line(model))[:MAX_MODEL_NAME],
        prompt_tokens=_read_count(usage.get("prompt_tokens")),
        completion_tokens=_read_count(usage.get("completion_tokens")),
        finish=finish,
        tool_calls=calls,
    )
    if thought and finish is Finish.CUT:
        # Its thoughts took the room that the answer needed.
        raise EndedBeforeTextError(completion)
    return completion


def tool_calls_of(given: object) -> tuple[ToolCall, ...]:
    """Return the calls of functions that a model asks for; those without a name are left out."""
    calls = []
    for number, each in enumerate(map(Fields.of, given if isinstance(given, list) else [])):
        function = each.at("function")
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not name:
            continue
        # Ollama's own form has an object where OpenAI's has its JSON.
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        key = each.get("id")
        calls.append(
            ToolCall(
                id=storable(key) if isinstance(key, str) and key else f"call_{number}",
                name=_one_line(name)[:64],
                arguments=storable(text),
            )
        )
    return tuple(calls)


def json_of(body: bytes) -> Any:
    """Return the JSON of a body; that of a stream of events is put together from its parts."""
    text = body.decode("utf-8-sig", errors="replace")
    if text.lstrip().startswith(("data:", "event:", ": ")):
        return _from_stream(_events(text), is_whole="[DONE]" in text)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise unreadable(body) from None
    # Gemini puts its errors into a list.
    return found[0] if isinstance(found, list) and found else found


def _events(text: str) -> Iterator[Fields]:
    # Not splitlines: a text may hold U+2028, which JSON need not escape and which ends no line.
    for line in re.split(r"[\r\n]+", text):
        if not line.startswith("data:"):
            continue
        try:
            event = Fields.of(json.loads(line.removeprefix("data:")))
        except ValueError:
            # The mark of the end, or a line that says nothing.
            continue
        yield event


def _from_stream(events: Iterator[Fields], *, is_whole: bool) -> Mapping[str, Any]:
    """Return the completion that a stream's events make, or its error.

    One that says nowhere that it has ended was cut.
    """
    whole: dict[str, Any] = {}
    written = {"content": "", "refusal": "", "reasoning_content": ""}
    calls: dict[int, dict[str, Any]] = {}
    finish: object = None
    numbers: list[object] = []
    for event in events:
        if "error" in event:
            return event
        whole |= {key: event[key] for key in ("model", "usage") if event.get(key)}
        choices = event.objects("choices")
        if not choices or not choices[0]:
            continue
        numbers.append(choices[0].get("index"))
        if numbers[-1] != numbers[0]:
            # Of several answers (n) the first to come counts: their pieces come mixed.
            continue
        finish = choices[0].get("finish_reason") or finish
        delta = choices[0].at("delta", "message")
        thoughts = (str(delta[name]) for name in THOUGHT_FIELDS if delta.get(name))
        written["content"] += _text_of(delta.get("content"), b"")
        written["refusal"] += _text_of(delta.get("refusal"), b"")
        written["reasoning_content"] += "".join(thoughts)
        for call in delta.objects("tool_calls"):
            _add_call(calls, call)
    if not numbers:
        return {}
    message = {**written, "tool_calls": [calls[place] for place in sorted(calls)]}
    finish = finish or ("stop" if is_whole else "length")
    return {**whole, "choices": [{"finish_reason": finish, "message": message}]}


def _add_call(calls: dict[int, dict[str, Any]], part: Fields) -> None:
    """Add a part of a call to those before it: its arguments come in pieces."""
    index = part.whole("index")
    place = len(calls) if index is None else index
    call = calls.setdefault(place, {"id": "", "function": {"name": "", "arguments": ""}})
    call["id"] = call["id"] or part.get("id") or ""
    for name in ("name", "arguments"):
        call["function"][name] += part.at("function").text(name)


def _text_of(content: object, body: bytes) -> str:
    """Return a content's text; of one in parts, that of the parts that are text."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, (Mapping, str))]
        texts = [
            part if isinstance(part, str) else part.get("text")
            for part in parts
            if isinstance(part, str) or part.get("type", "text") in TEXT_PARTS
        ]
        return "".join(text for text in texts if isinstance(text, str))
    if content is None or isinstance(content, str):
        return content or ""
    raise unreadable(body)


def _parts(content: object) -> object:
    """Return the parts of a content that was sent as their JSON; any other content as it is."""
    if not isinstance(content, str) or not content.lstrip().startswith("[{"):
        return content
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return content
    is_parts = all(isinstance(each, dict) and isinstance(each.get("type"), str) for each in found)
    return found if is_parts else content


def _one_line(name: str) -> str:
    return " ".join(storable(name).split())


def _read_count(count: object) -> int | None:
    """Return a number of tokens; None where there is none that could be right."""
    if isinstance(count, bool) or not isinstance(count, (int, float, str)):
        return None
    try:
        number = float(count)
    except (ValueError, OverflowError):
        return None
    return round(number) if math.isfinite(number) and 0 <= number <= MAX_TOKENS else None


# What is no answer: errors of every form.


def failure_of(answer: Fields, body: bytes) -> AttemptFailed:
    """Return the failure of a body without choices: an error with status 200, or something else."""
    names = ("error", "detail", "message", "msg", "error_msg")
    return failure_in(answer, body) if any(map(answer.get, names)) else unreadable(body)


def failure_in(error: object, body: bytes) -> AttemptFailed:
    """Return the failure that an error object with status 200 stands for."""
    overflow = read_overflow(200, error)
    if overflow is not None:
        return AttemptFailed(ErrorText("model_too_long"), permanent=True, overflow=overflow)
    if is_filtered(error):
        return filtered()
    words, code = words_of(error), status_in(error)
    if not words and code is None:
        return unreadable(body)
    is_refused = code in REFUSED
    is_permanent = code is not None and 400 <= code < 500 and code not in RETRIED
    return AttemptFailed(
        ErrorText("model_refused", status=code or 200, words=quoted(words) or "error"),
        permanent=is_permanent,
        refused=is_refused,
        words=words,
        sickness=0 if is_refused else 1,
    )


def filtered() -> AttemptFailed:
    """Return the failure of a prompt or an answer that the server's filter of content stopped."""
    return AttemptFailed(ErrorText("model_filtered"), permanent=True)


def is_filtered(error: object) -> bool:
    """Return whether a refusal is one of the server's filter of content."""
    codes = {str(each).lower() for each in _fields(error, ("code", "type", "status"))}
    return bool(codes & FILTER_CODES) or FILTER_WORDS.search(words_of(error)) is not None


def unreadable(body: bytes) -> AttemptFailed:
    """Return the failure for an answer in the wrong form; a retry may help.

    It names the beginning of what came, so that staff can tell a login page from a model.
    """
    words = quoted(body[: 4 * MAX_QUOTED].decode("utf-8", errors="replace"))
    text = ErrorText("model_unreadable_words", words=words) if words else None
    return AttemptFailed(text or ErrorText("model_unreadable"), sickness=1)


def quoted(words: str) -> str:
    """Return the beginning of a server's words on one line."""
    line = _one_line(words)
    return line if len(line) <= MAX_QUOTED else line[: MAX_QUOTED - 1] + "…"


def words_of(error: object) -> str:
    """Return what an error says, in each of the forms that servers have; "" where it says nothing.

    Names of parameters are part of it. What a server repeats of the request isn't.
    """
    if isinstance(error, str):
        return error
    if isinstance(error, list):
        return " ".join(filter(None, map(words_of, error[:5])))
    if not isinstance(error, Mapping):
        return ""
    found = [_place(error.get("loc")), error.get("param")]
    for name in ("message", "msg", "error", "detail", "errors", "error_msg"):
        found.append(words_of(error.get(name)))
    metadata = error.get("metadata")
    # OpenRouter: what the provider behind it said.
    found.append(metadata.get("raw") if isinstance(metadata, Mapping) else None)
    return " ".join(each for each in found if isinstance(each, str) and each)


def _place(given: object) -> str:
    return ".".join(map(str, given)) if isinstance(given, list) else ""


def status_in(error: object) -> int | None:
    """Return the status of HTTP that an error object names."""
    for each in _fields(error, ("code", "status", "status_code")):
        if str(each).isdecimal() and 400 <= int(each) < 600:
            return int(each)
    return None


def _fields(error: object, names: tuple[str, ...]) -> Iterator[Any]:
    if isinstance(error, list):
        error = next(iter(error), None)
    if isinstance(error, Mapping):
        for name in names:
            if isinstance(error.get(name), (str, int)):
                yield error[name]
        yield from _fields(error.get("error"), names)
        yield from _fields(error.get("innererror"), names)
