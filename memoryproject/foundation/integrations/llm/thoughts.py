"""Remove a model's thoughts and the control tokens of its template from its answer. Pure.

Servers that don't parse a model's output send both within the answer. What an answer quotes of
them stays: in backticks, in quotes, in a code fence, or as a word of a sentence. Where it can't be
told apart, the text counts as a thought: a person must never read one.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memoryproject.foundation.tables import read_table

_QUOTES, _CLOSING_QUOTES = "`\"'“”‘’„«‹([", "`\"'“”‘’»›)]"
_SENTENCE_ENDS = '.!?…:;>。！？׃)]}*"”'
_GOES_ON = (",", ".", ";", ":", "!", "?")
_INVISIBLE = "\ufeff\u200b\u200e\u200f"
_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,40}|~{3,40})(?P<info>[^\n]*)$", re.MULTILINE)
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]{1,300}\1(?!`)")
_THOUGHT_FENCE = re.compile(r"(?i)\s*(?:think(?:ing)?|thoughts?|reasoning)\s*")
_TABLE = read_table(__file__, "thoughts.yaml")


def _any_of(name: str, *, flags: re.RegexFlag = re.DOTALL) -> re.Pattern[str]:
    """Return what matches any of the table's patterns of this name."""
    parts: dict[str, str] = _TABLE["parts"]
    found = "|".join(f"(?:{each})" for each in _TABLE[name])
    whole = re.sub(r"\{([A-Z]+)\}", lambda part: parts[part[1]], found)
    return re.compile(whole, re.IGNORECASE | flags)


_HEADED = _any_of("headed")
_HEADED_ANSWER = _any_of("headed_answer", flags=re.MULTILINE)
_FIRST = _any_of("first")
_LAST = _any_of("last")
_CALLS_OF_TOKENS = [re.compile(each, re.DOTALL) for each in _TABLE["calls"]]
_BARE_CHANNELS = re.compile(_TABLE["bare_channels"])
_PATTERNS = {name: re.compile(each) for name, each in _TABLE["patterns"].items()}
_KEYS = {name: frozenset(keys) for name, keys in _TABLE["keys"].items()}
# A pair within a sentence that encloses no more words than this is a quotation of the tags.
MAX_QUOTED_WORDS = 4
# How much is looked at of the line before a tag.
NEAR = 40

# A whole answer between the marks of a sentence; within a text they strike words out.
_SENTENCE = re.compile(r"(?s)\s*<s>((?:(?!</?s>).)*)(?:</s>)?\s*")
_CALL_KEYS = {"type", "id", "name", "arguments", "parameters"}
_CHANNELS = re.compile(r"<\|(?:channel|message)\|>")
_CHANNEL_PARTS = re.compile(r"<\|(?:start|end|return|call|channel)\|>")
# The same where the server has removed the tokens: "analysisThe user … assistantfinalWe open".
_BARE_FINAL = "assistantfinal"


@dataclass(frozen=True)
class _Tag:
    """One tag of a thought. ``family``: what its other end is named."""

    start: int
    end: int
    family: str
    is_close: bool
    is_empty: bool
    is_quoted: bool


def without_thoughts(text: str) -> str:
    """Return the answer alone; "" where there is none. A text without marks stays as it is."""
    written = _PATTERNS["escaped"].sub(r"<\1>", text)
    answer = _final_channel(_with_calls_of_tokens(written))
    answer = _field_of_answer(_after_heading(_without_fences(answer)))
    cleaned = _LAST.sub("", _without_first(_without_tags(answer)))
    cleaned = _unwrapped(cleaned, is_whole=cleaned == answer and "</final" not in answer)
    cleaned = _without_invented(_without_tokens(cleaned))
    return text if cleaned == written else cleaned.strip().strip(_INVISIBLE).strip()


def without_calls(text: str) -> str:
    """Return the text without the calls of functions that stand in it as text."""
    found = _object(text)
    name, given = found.get("name"), found.get("arguments", found.get("parameters"))
    if isinstance(name, str) and isinstance(given, dict) and found.keys() <= _CALL_KEYS:
        return "" if name.isidentifier() and name.islower() else text
    cleaned = _cut(text, _PATTERNS["call"])
    return text if cleaned == text else cleaned.strip()


def _without_fences(text: str) -> str:
    kept, place = [], 0
    for fence, end in _fences(text):
        if _THOUGHT_FENCE.fullmatch(fence["info"]):
            kept.append(text[place : fence.start()])
            place = len(text) if end is None else end
    return "".join([*kept, text[place:]])


def _without_first(text: str) -> str:
    """Return the text without the thoughts with which it begins."""
    while found := _FIRST.match(text.rstrip(), len(text) - len(text.lstrip())):
        text = text[found.end() :]
    return text


def _after_heading(text: str) -> str:
    last = [*_HEADED_ANSWER.finditer(text)][-1:] if _HEADED.match(text) else []
    return text[last[0].end() :] if last else text


def _field_of_answer(text: str) -> str:
    """Return the answer of an object that has nothing but thoughts and an answer."""
    found = _object(text)
    answers = found.keys() & _KEYS["answers"]
    if len(answers) != 1 or not isinstance(found[key := answers.pop()], str):
        return text
    thoughts = _KEYS["thoughts"] | (_KEYS["plans"] if key.startswith("final") else frozenset())
    is_told = len(found) > 1 or key in _KEYS["alone"]
    return found[key] if is_told and found.keys() <= thoughts | {key} else text


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object that a text is, also in a fence; {} where it is none."""
    body = text.strip()
    if body.startswith("```") and body.endswith("```"):
        body = body[3:-3].removeprefix("json").strip()
    try:
        found = json.loads(body) if body.startswith("{") else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _without_invented(text: str) -> str:
    turns = [*_PATTERNS["turn"].finditer(text)]
    asks = next((each for each in turns if each[1]), None)
    if asks is None or all(each[1] for each in turns if each.start() > asks.start()):
        return text
    before = text[: asks.start()].rstrip()
    is_written = (
        not before or before.endswith(":") or _PATTERNS["dialogue"].search(before) is not None
    )
    return text if is_written or _is_quoted(text, asks, _code(text)) else before


def _with_calls_of_tokens(text: str) -> str:
    """Return the text with the calls that a template writes in tokens as tags."""
    for pattern in _CALLS_OF_TOKENS:
        text = pattern.sub(_as_tag, text)
    return text


def _as_tag(found: re.Match[str]) -> str:
    parts = found.groupdict()
    name, given = parts["name"] or parts["other"], parts["given"].strip()
    tag = f"<function={name}>{given}</function>"
    return f"<|channel|>final<|message|>{tag}<|end|>" if "to=" in found[0] else tag


def _final_channel(text: str) -> str:
    """Return what stands in the final channel, where the text has channels (harmony)."""
    if _BARE_CHANNELS.match(text):
        return text.partition(_BARE_FINAL)[2]
    quoted = _code(text)
    if all(_is_literal(text, each, quoted) for each in _CHANNELS.finditer(text)):
        return text
    parts = (part.partition("<|message|>") for part in _CHANNEL_PARTS.split(text))
    return "".join(body for header, mark, body in parts if mark and _is_said(header))


def _is_said(header: str) -> bool:
    words = header.split()
    return "to=" not in header and (not words or words[0].lower() in ("assistant", "final"))


def _unwrapped(text: str, *, is_whole: bool) -> str:
    """Return an answer without what is around it; ``is_whole``: only where it is all in it."""
    body = text.strip()
    if boxed := _PATTERNS["boxed"].fullmatch(body):
        return boxed[1]
    wrapping = _PATTERNS["wrapping"].match(body)
    if wrapping is None or is_whole and body.lower().count(f"</{wrapping[1]}>".lower()) != 1:
        return text
    inner, end = body[wrapping.end() :], f"</{wrapping[1]}>"
    if inner.lower().endswith(end.lower()):
        return inner[: -len(end)]
    return text if is_whole else inner


def _without_tags(text: str) -> str:
    """Return the text without what stands between the tags of thoughts."""
    code = _code(text)
    tags = [
        _tag(each, is_quoted=_is_quoted(text, each, code))
        for each in _PATTERNS["tag"].finditer(text)
    ]
    if not tags:
        return text
    kept: list[str] = []
    named: set[int] = set()
    place = 0
    for tag in tags:
        if tag.start < place or tag.is_quoted:
            continue
        if tag.is_close:
            if tag.start not in named and _closes_alone(text, tag):
                kept, place = [], tag.end
            continue
        close = tag if tag.is_empty else _end_of(tag, tags)
        if _opens(text, tag, close):
            kept.append(text[place : tag.start])
            place = len(text) if close is None else close.end
        elif close is not None:
            named.add(close.start)
    kept.append(text[place:])
    return _joined(kept)


def _tag(found: re.Match[str], *, is_quoted: bool) -> _Tag:
    parts = found.groupdict()
    gemma, token = parts["gemma"], parts["token"]
    name = gemma and "channel" or token or parts["angle"] or parts["square"] or parts["kimi"]
    is_close = gemma == "<channel|>" or "/" in (parts["a"], parts["b"], parts["c"])
    is_close = is_close or (parts["d"] or "").lower() in ("end_", "end_of_", "/")
    is_empty = parts["angle"] is not None and found[0].rstrip("> \t\n").endswith("/")
    return _Tag(*found.span(), name.lower(), is_close, is_empty, is_quoted)


def _end_of(tag: _Tag, tags: Sequence[_Tag]) -> _Tag | None:
    """Return the tag that closes this one: the next of its name, else any, else a quoted one."""
    closes = [each for each in tags if each.is_close and each.start >= tag.end]
    bare = [each for each in closes if not each.is_quoted]
    own = [each for each in bare if each.family == tag.family]
    return next(iter(own or bare or closes), None)


def _opens(text: str, tag: _Tag, close: _Tag | None) -> bool:
    """Return whether a thought begins here, and not a sentence about the tag."""
    before, after = _line_before(text, tag.start), text[tag.end : tag.end + 1]
    if not before or after in ("\n", "\r"):
        return True
    hugs = not after.isspace()
    if before[-1] in _SENTENCE_ENDS:
        return close is not None or hugs
    if close is None or not hugs:
        return False
    inside = text[tag.end : close.start]
    return "\n" in inside or len(inside.split(None, MAX_QUOTED_WORDS)) > MAX_QUOTED_WORDS


def _closes_alone(text: str, tag: _Tag) -> bool:
    """Return whether a thought ends here that began in the prompt."""
    before, after = _line_before(text, tag.start), text[tag.end : tag.end + 2]
    if not before or not after.strip() or after[0] in "\r\n":
        return True
    if after[0] in _GOES_ON:
        return False
    is_apart = text[tag.start - 1].isspace() and before[-1] not in _SENTENCE_ENDS
    return not (is_apart and after[0] == " " and after[-1].islower())


def _line_before(text: str, place: int) -> str:
    """Return the end of what stands in the line before the place, without its white space."""
    near = text[max(place - NEAR, 0) : place].rpartition("\n")[2]
    return near.strip().strip(_INVISIBLE)


def _joined(kept: Sequence[str]) -> str:
    """Return the pieces as one text, with no more white space between them than one had."""
    joined: list[str] = []
    for piece in kept:
        is_apart = not joined or joined[-1][-1].isspace()
        if piece := piece.lstrip(" \t") if is_apart else piece:
            joined.append(piece)
    return "".join(joined)


def _without_tokens(text: str) -> str:
    """Return the text without control tokens of templates, and without what was run on."""
    code = _code(text)
    begins, end, strike = len(text) - len(text.lstrip()), len(text.rstrip()), text.find("<s>")
    role = max((each.end() for each in _PATTERNS["role"].finditer(text)), default=0)
    for found in (*_PATTERNS["run_on"].finditer(text), *_PATTERNS["end"].finditer(text)):
        start = found.start()
        is_kept = found.re is _PATTERNS["end"] and (
            start <= begins and found.end() < end or start < role
        )
        is_kept = is_kept or (found[0] == "</s>" and 0 <= strike < start)
        if start < end and not is_kept and not _is_literal(text, found, code):
            end = start
    text = text[:end] if end < len(text.rstrip()) else text
    for pattern in (_PATTERNS["role"], _PATTERNS["token"]):
        text = _cut(text, pattern)
    sentence = _SENTENCE.fullmatch(text)
    return text if sentence is None else sentence[1]


def _cut(text: str, pattern: re.Pattern[str]) -> str:
    code = _code(text)
    return pattern.sub(lambda found: found[0] if _is_literal(text, found, code) else "", text)


def _is_literal(text: str, found: re.Match[str], code: Sequence[tuple[int, int]]) -> bool:
    """Return whether a token is quoted, or is a word of a sentence."""
    start, end = found.span()
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    is_word = len(before) == 2 and before[0].isalnum() and before[1] == " " and bool(after.strip())
    return is_word and after[0] in (" ", *_GOES_ON) or _is_quoted(text, found, code)


def _is_quoted(text: str, found: re.Match[str], code: Sequence[tuple[int, int]]) -> bool:
    """Return whether a mark stands in code, or between quotes."""
    start, end = found.span()
    if any(begin <= start and end <= last for begin, last in code):
        return True
    before, after = text[max(start - 2, 0) : start], text[end : end + 1]
    # A quotation begins after a space: otherwise one has ended here.
    is_begun = before[-1:] != "" and before[-1] in _QUOTES and not before[:-1].isalnum()
    return is_begun and after != "" and after in _CLOSING_QUOTES


def _code(text: str) -> list[tuple[int, int]]:
    """Return the places of code: fences that are closed, and what stands between backticks."""
    fences = [(fence.start(), end) for fence, end in _fences(text) if end is not None]
    return [*fences, *(each.span() for each in _INLINE.finditer(text))]


def _fences(text: str) -> Iterator[tuple[re.Match[str], int | None]]:
    """Yield the beginning of each fence and the place of its end; None where it isn't closed."""
    opened: re.Match[str] | None = None
    for found in _FENCE.finditer(text):
        if opened is None:
            opened = found
        elif found["mark"].startswith(opened["mark"]) and not found["info"].strip():
            yield opened, found.end()
            opened = None
    if opened is not None:
        yield opened, None
