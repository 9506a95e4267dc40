"""What a model on a server accepts: learned from its refusals, and remembered.

Learned only from a refusal that names the thing, and kept once the changed request has succeeded.
Where a server names nothing, plainer requests are tried.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Protocol

from typing_extensions import Self

from memoryproject.foundation.integrations.context_limit import (
    UNKNOWN_TOKENIZER,
    Overflow,
    read_reply_limit,
    room_of,
)
from memoryproject.foundation.integrations.llm.base import ChatMessage, ChatRequest
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.characters import estimate_tokens

# The parameters that limit the length of an answer; "" where none is accepted.
MAX_COMPLETION_TOKENS, MAX_TOKENS = "max_completion_tokens", "max_tokens"
# The forms of a structured answer, from the most demanding to the most compatible.
JSON_SCHEMA, JSON_OBJECT, PROMPT = "json_schema", "json_object", "prompt"
# A server's words are searched no further: later ones may repeat the prompt.
MAX_WORDS = 600
# A smaller number is none that an answer's length can be limited to.
LEAST_REPLY_TOKENS = 16
# What a person's message says in place of a picture that the model can't see.
NO_PICTURE = "[picture: the model can't see it]"


@dataclass(frozen=True)
class Traits:
    """What one model on one server accepts; the defaults are OpenAI's own.

    reply_limit: the parameter that limits the length of an answer; most_reply_tokens: the largest
    value that it takes; window: how many tokens prompt and answer have together. answer_form: how a
    structured answer is asked for. room: how many times more a model gets to write that thinks
    before it answers.

    Of messages: joins_turns: system messages stand first and roles alternate; folds_system: the
    system's text stands in the first user's message; no_names, no_pictures; tools_as_text: calls of
    tools and their results are texts.

    streams: answers come as a stream only. no_tools: tools can't be offered.

    Of embeddings: no_base64, no_dimensions; batch: how many texts a call takes; text_bytes: how
    long a text may be, None for the usual.
    """

    reply_limit: str = MAX_COMPLETION_TOKENS
    most_reply_tokens: int | None = None
    window: int | None = None
    answer_form: str = JSON_SCHEMA
    room: int = 1
    joins_turns: bool = False
    folds_system: bool = False
    no_names: bool = False
    no_pictures: bool = False
    tools_as_text: bool = False
    streams: bool = False
    no_tools: bool = False
    no_base64: bool = False
    no_dimensions: bool = False
    batch: int | None = None
    text_bytes: int | None = None

    @classmethod
    def of(cls, learned: Mapping[str, Any]) -> Self:
        """Return the traits of a record; what an other version has written is left out."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: learned[name] for name in names & learned.keys()})

    def record(self) -> dict[str, Any]:
        """Return what differs from the defaults."""
        usual = asdict(Traits())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


def traits_text(learned: Mapping[str, Any]) -> str:
    """Return a record of traits for staff."""
    return ", ".join(f"{name}={value}" for name, value in sorted(learned.items()))


class TraitsStore(Protocol):
    """Where the traits of one model on one server are kept."""

    def load(self) -> Mapping[str, Any]: ...

    def save(self, learned: Mapping[str, Any]) -> None:
        """Keep it. Raises nothing: what isn't kept is learned again."""


class UnsharedTraits:
    """Traits of this process alone."""

    def __init__(self) -> None:
        self._learned: Mapping[str, Any] = {}

    def load(self) -> Mapping[str, Any]:
        return self._learned

    def save(self, learned: Mapping[str, Any]) -> None:
        self._learned = learned


@dataclass(frozen=True)
class Sent:
    """What a refused request had, so that a refusal can be of it."""

    has_system: bool = False
    has_names: bool = False
    has_pictures: bool = False
    has_tool_messages: bool = False
    offers_tools: bool = False
    has_schema: bool = False
    reply_tokens: int | None = None

    @classmethod
    def of(cls, request: ChatRequest, traits: Traits) -> Self:
        """Return what the request had in the form in which it was sent."""
        messages = fitted(request.messages, traits)
        return cls(
            has_system=any(each.role == "system" for each in messages),
            has_names=any(each.name for each in messages),
            has_pictures=any(each.pictures for each in messages),
            has_tool_messages=any(each.tool_calls or each.tool_call_id for each in messages),
            offers_tools=bool(request.tools) and not traits.no_tools,
            has_schema=request.answer_schema is not None and traits.answer_form != PROMPT,
            reply_tokens=reply_room(request, traits),
        )


def reply_room(request: ChatRequest, traits: Traits, fits: int | None = None) -> int | None:
    """Return how many tokens an answer may have; None where nothing is said of it.

    ``fits``: how many the server's counts leave, after it has refused more.
    """
    wanted = request.max_reply_tokens
    if wanted is None or not traits.reply_limit:
        return None
    limits = [wanted * traits.room, traits.most_reply_tokens, fits]
    if traits.window is not None:
        left = round(traits.window - _estimate(request) / UNKNOWN_TOKENIZER)
        limits.append(max(left, min(wanted, traits.window // 2)))
    return min(each for each in limits if each is not None)


def smaller_room(overflow: Overflow, request: ChatRequest, sent: int | None) -> int | None:
    """Return the room for the answer with which a request fits that was refused with ``sent``.

    None where its prompt is too long, or where the server doesn't say what fits.
    """
    if sent is None or request.max_reply_tokens is None or overflow.window is None:
        return None
    estimate = _estimate(request)
    # Some sentences count the room for the answer, too, and don't say so.
    counts = [
        each for each in (overflow.prompt, (overflow.prompt or 0) - sent) if each and each > 0
    ]
    prompt = min(counts, key=lambda each: abs(each - estimate), default=estimate)
    left = round(overflow.window - (prompt if counts else prompt / UNKNOWN_TOKENIZER))
    is_short = prompt <= room_of(overflow.window, request.max_reply_tokens)
    return left if is_short and LEAST_REPLY_TOKENS <= left < sent else None


def _estimate(request: ChatRequest) -> int:
    texts = [each.content for each in request.messages]
    return sum(map(estimate_tokens, [*texts, *map(json.dumps, request.tools)]))


_TABLE: Mapping[str, Any] = read_table(__file__, "server_traits.yaml")
_GENERIC = frozenset(_TABLE["generic"].split())


def _names(thing: str, words: str) -> bool:
    return re.search(_TABLE[thing], words, re.IGNORECASE) is not None


_NUMBER = re.compile(r"(?<![\w.])\d[\d,]{0,12}(?![\w.])")


def learned_from(words: str, sent: Sent, traits: Traits, tried: Sequence[Traits]) -> Traits | None:
    """Return the traits to try next, after a refusal of a chat's request with these words.

    ``tried``: those of this request that were refused before. None where the refusal names nothing
    that could be changed.
    """
    words = words[:MAX_WORDS]
    if _says_nothing(words):
        steps = _plainer(sent, traits)
    elif _names("unknown_field", words):
        steps = [
            step
            for plain in _plainer(sent, traits)
            for step in (plain, replace(plain, reply_limit=""))
        ]
    else:
        steps = _named(words, sent, traits)
    return next((each for each in steps if each != traits and each not in tried), None)


def _says_nothing(words: str) -> bool:
    plain = "".join(each if each.isalpha() else " " for each in words.lower())
    return set(plain.split()) <= _GENERIC


def _named(words: str, sent: Sent, traits: Traits) -> list[Traits]:
    """Return the changes that the words ask for, the likeliest first."""
    steps = []
    if sent.reply_tokens is not None and _names("limit", words):
        steps += _limit_steps(words, sent.reply_tokens, traits)
    if sent.has_schema and _names("form", words):
        less = {JSON_SCHEMA: JSON_OBJECT, JSON_OBJECT: PROMPT}
        steps.append(replace(traits, answer_form=less.get(traits.answer_form, PROMPT)))
    if _names("streams", words):
        steps.append(replace(traits, streams=True))
    if sent.has_pictures and (_names("pictures", words) or _names("text_content", words)):
        steps.append(replace(traits, no_pictures=True))
    if _names("turns", words):
        steps.append(replace(traits, joins_turns=True))
    if sent.has_tool_messages and _names("tools", words):
        steps.append(replace(traits, tools_as_text=True))
    if sent.offers_tools and _names("tools", words):
        steps.append(replace(traits, no_tools=True))
    if sent.has_names and _names("name", words):
        steps.append(replace(traits, no_names=True))
    if sent.has_system and _names("system", words):
        steps.append(replace(traits, folds_system=True))
    return steps


def _limit_steps(words: str, sent: int, traits: Traits) -> list[Traits]:
    """Return the changes of the limit of an answer's length."""
    most = read_reply_limit(words, below=sent)
    if most is not None and most >= LEAST_REPLY_TOKENS:
        return [replace(traits, most_reply_tokens=most)]
    if traits.reply_limit == MAX_TOKENS and not _names("limit_is_missing", words):
        order = [MAX_COMPLETION_TOKENS, ""]
    else:
        order = [MAX_TOKENS, ""]
    return [replace(traits, reply_limit=name) for name in order]


def _plainer(sent: Sent, traits: Traits) -> list[Traits]:
    """Return plainer requests, for a server that refuses without a word. The limit stays."""
    limited = replace(traits, reply_limit=MAX_TOKENS) if sent.reply_tokens is not None else traits
    plain = replace(limited, answer_form=PROMPT) if sent.has_schema else limited
    bare = replace(plain, joins_turns=True, no_names=True)
    no_pictures = traits.no_pictures or sent.has_pictures
    no_tools = traits.no_tools or sent.offers_tools
    return [plain, replace(bare, no_pictures=no_pictures, no_tools=no_tools)]


def embedding_learned_from(
    words: str, *, texts: Sequence[str], has_dimensions: bool, traits: Traits
) -> Traits | None:
    """Return the traits to try next, after a refusal of texts to embed with these words."""
    words = words[:MAX_WORDS]
    longest = max((len(text.encode()) for text in texts), default=0)
    numbers = [int(each.replace(",", "")) for each in _NUMBER.findall(words)]
    if not traits.no_base64 and (_names("base64", words) or not words.strip()):
        return replace(traits, no_base64=True)
    if has_dimensions and not traits.no_dimensions and _names("dimensions", words):
        return replace(traits, no_dimensions=True)
    if len(texts) > 1 and _names("batch", words):
        fitting = [each for each in numbers if 1 <= each < len(texts)]
        return replace(traits, batch=max(fitting, default=len(texts) // 2))
    if longest > LEAST_REPLY_TOKENS and _names("length", words):
        # A token is at least one byte, and a server's own count of them isn't known here.
        fitting = [each for each in numbers if LEAST_REPLY_TOKENS <= each < longest]
        return replace(traits, text_bytes=min(max(fitting, default=longest), longest // 2))
    return None


# Fit the messages of a prompt to what a server accepts.


def fitted(messages: Sequence[ChatMessage], traits: Traits) -> list[ChatMessage]:
    """Return the messages in the form that the server accepts. Nothing that was said is lost."""
    found = [_fitted_alone(each, traits) for each in messages]
    if traits.joins_turns or traits.folds_system:
        found = _system_first(found)
    if traits.folds_system:
        found = _folded(found)
    return _joined(found) if traits.joins_turns or traits.folds_system else found


def _fitted_alone(message: ChatMessage, traits: Traits) -> ChatMessage:
    if traits.tools_as_text and (message.tool_calls or message.tool_call_id):
        message = _as_text(message)
    if traits.no_names and message.name:
        is_users = message.role == "user"
        content = f"{message.name}: {message.content}" if is_users else message.content
        message = replace(message, content=content, name="")
    if traits.no_pictures and message.pictures:
        content = "\n".join(filter(None, [message.content, NO_PICTURE]))
        message = replace(message, content=content, pictures=())
    return message


def _as_text(message: ChatMessage) -> ChatMessage:
    if message.tool_call_id:
        text = f"[result of {message.name or 'a tool'}] {message.content}"
        return ChatMessage("user", text)
    functions = [call.get("function") or call.get("custom") or {} for call in message.tool_calls]
    calls = [
        f"[calls {each.get('name', '')}({each.get('arguments', each.get('input', ''))})]"
        for each in functions
    ]
    return ChatMessage(message.role, "\n".join(filter(None, [message.content, *calls])))


def _system_first(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    texts = [each.content for each in messages if each.role == "system"]
    others = [each for each in messages if each.role != "system"]
    return [*([ChatMessage("system", "\n\n".join(texts))] if texts else []), *others]


def _folded(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with the system's text before what the first user says."""
    if not messages or messages[0].role != "system":
        return list(messages)
    return [ChatMessage("user", messages[0].content), *messages[1:]]


def _joined(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with neighbours of one role joined, and a user's first."""
    found: list[ChatMessage] = []
    for each in messages:
        is_call = bool(each.tool_calls or each.tool_call_id)
        last = found[-1] if found else None
        was_call = last is not None and bool(last.tool_calls or last.tool_call_id)
        if last is not None and last.role == each.role and not is_call and not was_call:
            found[-1] = _pair(last, each)
            continue
        if each.role == "assistant" and (last is None or last.role == "system"):
            # Templates that alternate begin with a user's message.
            found.append(ChatMessage("user", "…"))
        found.append(each)
    return found


def _pair(first: ChatMessage, second: ChatMessage) -> ChatMessage:
    if first.name != second.name:
        no_names = Traits(no_names=True)
        first, second = (_fitted_alone(each, no_names) for each in (first, second))
    content = "\n\n".join(filter(None, [first.content, second.content]))
    return replace(first, content=content, pictures=[*first.pictures, *second.pictures])
