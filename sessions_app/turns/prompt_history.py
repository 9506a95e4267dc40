"""The history of a prompt: what chat APIs take of it, and which turns fit. Pure.

A turn is a message of a user with everything after it, up to the next one. A call of a tool and
its results belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from memoryproject.foundation.integrations.llm.base import ChatMessage
from memoryproject.foundation.text.characters import (
    characters_within,
    cut_between_characters,
    cut_to_tokens,
    estimate_tokens,
)

USER, TOOL = "user", "tool"
# Some servers refuse an empty result.
NO_OUTPUT = "(no output)"
# A message in less room than this says nothing.
MIN_CUT = 20
# Parts of one text are rounded down separately.
ROUNDING = 2
MAX_TORN = 40
CUT_MARK = "\n[… {count} characters are left out here …]\n"


def sendable(lines: Sequence[ChatMessage], *, keeps_last: bool = False) -> list[ChatMessage]:
    """Return the lines without empty ones, calls without results, and results without their call.

    A chat API refuses a history that has one of these. ``keeps_last``: the last line stays, also
    if it is empty.
    """
    kept: list[ChatMessage] = []
    place = 0
    while place < len(lines):
        line, after = lines[place], _after_results(lines, place)
        is_last = keeps_last and after == len(lines)
        if line.tool_calls:
            kept += _exchange(line, lines[place + 1 : after])
        elif line.role != TOOL and (line.content.strip() or is_last):
            kept.append(line)
        place = after
    return kept


def _after_results(lines: Sequence[ChatMessage], place: int) -> int:
    """Return the place after a line and the tools' messages that follow it."""
    after = place + 1
    while after < len(lines) and lines[after].role == TOOL:
        after += 1
    return after


def _exchange(call: ChatMessage, results: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the call with its results: only those calls that have one, each with its first."""
    found: dict[str, ChatMessage] = {}
    for result in results:
        found.setdefault(result.tool_call_id, result)
    calls = [each for each in call.tool_calls if each["id"] in found]
    if not calls:
        return [replace(call, tool_calls=())] if call.content.strip() else []
    outputs = [found[each["id"]] for each in calls]
    outputs = [
        each if each.content.strip() else replace(each, content=NO_OUTPUT) for each in outputs
    ]
    return [replace(call, tool_calls=calls), *outputs]


def units(lines: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """Divide lines into what is kept or left out together: a call and its results, or a message."""
    found: list[list[ChatMessage]] = []
    for line in lines:
        if found and line.role == TOOL:
            found[-1].append(line)
        else:
            found.append([line])
    return found


def turns(lines: Sequence[ChatMessage]) -> list[list[ChatMessage]]:
    """Divide lines into turns. What stands before the first user's message has no question.

    So each of these units is one turn.
    """
    first = next((place for place, line in enumerate(lines) if line.role == USER), len(lines))
    found = units(lines[:first])
    for line in lines[first:]:
        if line.role == USER:
            found.append([line])
        else:
            found[-1].append(line)
    return found


class DividedHistory(NamedTuple):
    """A history in the parts that are kept or left out for different reasons.

    ``question``: the message that is answered; ``middle``: what was done since, such as the calls
    of tools, without the last unit of it, which is ``last``. The question and the last unit make
    no sense without each other. A history that ends with the question has only it.
    """

    earlier: list[ChatMessage]
    question: list[ChatMessage]
    middle: list[ChatMessage]
    last: list[ChatMessage]


def divide_history(lines: Sequence[ChatMessage]) -> DividedHistory:
    """Divide the lines of a history at its last question."""
    found = turns(lines)
    if not found:
        return DividedHistory([], [], [], [])
    earlier = [line for turn in found[:-1] for line in turn]
    last = found[-1]
    if last[0].role != USER:
        return DividedHistory(earlier, [], [], last)
    after = units(last[1:])
    middle = [line for unit in after[:-1] for line in unit]
    return DividedHistory(earlier, last[:1], middle, after[-1] if after else [])


def lines_tokens(lines: Sequence[ChatMessage]) -> int:
    """Return the tokens of all lines."""
    return sum(line.tokens for line in lines)


def question_within(question: Sequence[ChatMessage], room: int) -> tuple[list[ChatMessage], int]:
    """Return the message that is answered; if it is too long, with room left for the rest."""
    if lines_tokens(question) <= room:
        return list(question), 0
    return _shared(question, room * 3 // 4)


def _shared(lines: Sequence[ChatMessage], room: int) -> tuple[list[ChatMessage], int]:
    """Return the lines, the longest of them cut, and how many were; calls of tools stay whole."""
    room -= sum(line.tokens - estimate_tokens(line.content) for line in lines)
    lengths = [estimate_tokens(line.content) for line in lines]
    widths = widths_within(lengths, room)
    pairs = zip(lines, lengths, widths, strict=True)
    short = [line if length <= width else _cut(line, width) for line, length, width in pairs]
    return short, sum(length > width for length, width in zip(lengths, widths, strict=True))


def widths_within(lengths: Sequence[int], room: int) -> list[int]:
    """Share the room: short texts stay whole, and leave what they don't need to the long ones."""
    widths = [0] * len(lengths)
    left = max(room, 0)
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    for done, place in enumerate(order):
        widths[place] = min(lengths[place], left // (len(order) - done))
        left -= widths[place]
    return widths


def newest_within(earlier: Sequence[ChatMessage], left: int) -> tuple[list[ChatMessage], int]:
    """Return the newest turns that fit, and how many of their messages were shortened.

    Only the turn right before the question is shortened: older ones are left out.
    """
    kept: list[ChatMessage] = []
    for turn in reversed(turns(earlier)):
        if lines_tokens(turn) > left:
            if not kept and left >= MIN_CUT * len(turn):
                short, cut = _shared(turn, left)
                return (short, cut) if lines_tokens(short) <= left else ([], 0)
            break
        kept[:0] = turn
        left -= lines_tokens(turn)
    return kept, 0


def whole_within(lines: Sequence[ChatMessage], left: int) -> list[ChatMessage]:
    """Return the newest units that fit, whole."""
    kept: list[ChatMessage] = []
    for unit in reversed(units(lines)):
        if lines_tokens(unit) > left:
            break
        kept[:0] = unit
        left -= lines_tokens(unit)
    return kept


def _cut(line: ChatMessage, tokens: int) -> ChatMessage:
    """Return the beginning and the end of a message in at most ``tokens`` tokens.

    What is asked about a pasted text stands before or after it.
    """
    text = line.content.strip()
    room = tokens - estimate_tokens(CUT_MARK.format(count=f"{len(text):,}")) - ROUNDING
    if room < MIN_CUT:
        return replace(line, content=cut_to_tokens(text, tokens))
    head = cut_to_tokens(text, room * 2 // 3, mark="")
    start = len(text) - characters_within(text[::-1], room - room * 2 // 3)
    tail = text[cut_between_characters(text, start) :]
    # A torn word says nothing, but a text may have no spaces at all.
    tail = tail.partition(" ")[2] if " " in tail[:MAX_TORN] else tail
    count = f"{len(text) - len(head) - len(tail):,}"
    return replace(line, content=f"{head}{CUT_MARK.format(count=count)}{tail.lstrip()}")
