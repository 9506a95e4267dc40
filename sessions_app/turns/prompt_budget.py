"""Choose what of a prompt's parts fits into its limit. Pure.

The whole prompt fits ``max_context_tokens``, and the limit of the role. A small limit of a role
counts the conversation and what is remembered only: the fixed text alone would fill it.

Room is given in this order: the fixed text with the profile, the message that is answered, what
was recalled (at least a quarter of the rest, if there is so much of it), the summary, the passage,
the history from its end, the cards, what is known of the person. A text that is too long for its
room is cut, and a mark stands for what is left out; the stored text stays whole. The history is
left out by whole turns, so that it never begins with an answer to a question that isn't there.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from memoryproject.foundation.integrations.llm.base import ChatMessage
from memoryproject.foundation.retrieval.query import best_passage
from memoryproject.foundation.text.characters import (
    characters_within,
    cut_between_characters,
    cut_to_tokens,
    estimate_tokens,
)
from sessions_app.turns import prompt

# A lower limit of a role doesn't count the fixed text.
SMALL_LIMIT = 1_000
# The least room that the profile, and then the rest, have in any prompt.
MIN_PROFILE = 400
MIN_ROOM = 40
# A recalled text up to this length is whole or left out; of a longer one a passage is taken.
PASSAGE = 300
MIN_PASSAGE = 100


def build_prompt(parts: prompt.PromptParts) -> prompt.Prompt:
    """Build the prompt within its limit.

    The fixed text and the message that is answered always stay, and of the message before it as
    much as there is room for.
    """
    whole = _assembled(parts, parts)
    parts, cut_profile = _with_profile_within(parts)
    fixed = _fixed_tokens(parts)
    limit = _limit(parts, fixed)
    if limit is None or (whole.tokens <= limit and not _has_long_recalled(parts, limit)):
        return whole
    built, slack = whole, 0
    for _ in range(3):
        built = _within(parts, max(limit - fixed - slack, MIN_ROOM))
        if built.tokens <= limit:
            break
        # What was rounded down.
        slack += built.tokens - limit
    if built.tokens > limit:
        built = _least(parts, max(limit - fixed, MIN_ROOM))
    return replace(built, cut_profile=cut_profile)


def least_tokens(parts: prompt.PromptParts) -> int:
    """Return the tokens of the fixed text and the message that is answered, both whole.

    Where something was done since that message, such as the call of a tool, the last of it is
    included.
    """
    found = divide_history(parts.history)
    return _fixed_tokens(parts) + lines_tokens(found.question) + lines_tokens(found.last)


def _least(parts: prompt.PromptParts, room: int) -> prompt.Prompt:
    """Build the prompt of the fixed text and the message that is answered alone."""
    found = divide_history(parts.history)
    history, cut = question_within([*found.question, *found.last], room)
    bare = replace(_without_memory(parts), history=history)
    return replace(_assembled(parts, bare), cut_messages=cut, conversation_room=0)


def _limit(parts: prompt.PromptParts, fixed: int) -> int | None:
    """Return the limit of the whole prompt; None without one."""
    limits = []
    if parts.max_context_tokens is not None:
        limits.append(parts.max_context_tokens)
    if parts.role_tokens is not None:
        small = parts.role_tokens < SMALL_LIMIT
        limits.append(parts.role_tokens + (fixed if small else 0))
    return min(limits, default=None)


def _fixed_tokens(parts: prompt.PromptParts) -> int:
    return estimate_tokens(prompt.system_text(_without_memory(parts)))


def _without_memory(parts: prompt.PromptParts) -> prompt.PromptParts:
    return replace(parts, recalled=(), cards=(), person=None, summary="", passage="")


def _fence_tokens(parts: prompt.PromptParts) -> int:
    """Return the tokens of the words around what is remembered; 0 if nothing is."""
    remembered = parts.recalled or parts.cards or parts.person
    if not (remembered or parts.summary or parts.passage):
        return 0
    one = replace(_without_memory(parts), summary="x", passage="x")
    return estimate_tokens(prompt.system_text(one)) - _fixed_tokens(parts) + ROUNDING


def _with_profile_within(parts: prompt.PromptParts) -> tuple[prompt.PromptParts, int]:
    """Shorten the longest texts of the profile if it leaves too little room for the rest.

    Returns how many of its texts were shortened.
    """
    given = [each for each in (parts.max_context_tokens, parts.role_tokens) if each is not None]
    room = max(min(given, default=0) // 2, MIN_PROFILE)
    if not given or _fixed_tokens(parts) <= room:
        return parts, 0
    profile = parts.profile
    texts = [profile.persona, profile.business_facts, profile.opening_hours]
    empty = replace(parts, profile=prompt.Profile(profile.name, languages=profile.languages))
    widths = widths_within(
        [estimate_tokens(text) for text in texts], room - _fixed_tokens(empty) - 10
    )
    short = [cut_to_tokens(text, width) for text, width in zip(texts, widths, strict=True)]
    persona, facts, hours = short
    shorter = replace(profile, persona=persona, business_facts=facts, opening_hours=hours)
    cut = sum(one != other for one, other in zip(texts, short, strict=True))
    return replace(parts, profile=shorter), cut


def _has_long_recalled(parts: prompt.PromptParts, limit: int) -> bool:
    longest = _longest_passage(limit)
    return any(estimate_tokens(text.content) > longest for text in parts.recalled)


def _longest_passage(room: int) -> int:
    """Return how much of one recalled text a prompt holds: much of it only where room is plenty."""
    return max(PASSAGE, room // 20)


def _within(parts: prompt.PromptParts, room: int) -> prompt.Prompt:
    """Build the prompt with at most ``room`` tokens beside the fixed text."""
    earlier, question_lines, middle, last = divide_history(parts.history)
    question, cut_messages = question_within([*question_lines, *last], room)
    left = max(room - lines_tokens(question) - _fence_tokens(parts), 0)
    texts = estimate_tokens(parts.summary) + estimate_tokens(parts.passage)
    recalled_room = min(max(room // 4, left - texts - lines_tokens([*earlier, *middle])), left)
    recalled = _recalled_within(parts, recalled_room, longest=_longest_passage(room))
    left -= sum(_tokens_of(text, parts) for text in recalled)
    conversation_room = left + lines_tokens(question)
    summary = _summary_within(parts, left, needed=lines_tokens([*earlier, *middle]))
    left -= estimate_tokens(summary)
    passage = parts.passage if estimate_tokens(parts.passage) <= left else ""
    left -= estimate_tokens(passage)
    middle_kept = whole_within(middle, left)
    left -= lines_tokens(middle_kept)
    # Older turns only where nothing newer is missing.
    is_whole = len(middle_kept) == len(middle)
    history, cut = newest_within(earlier, left) if is_whole else ([], 0)
    left -= lines_tokens(history)
    cards, left = _cards_within(parts, left)
    person = parts.person
    if person and estimate_tokens(person.content) + ROUNDING > left:
        person = None
    chosen = replace(
        parts,
        recalled=recalled,
        summary=summary,
        passage=passage,
        history=[
            *history,
            *question[: len(question_lines)],
            *middle_kept,
            *question[len(question_lines) :],
        ],
        cards=parts.cards[:cards],
        person=person,
    )
    built = _assembled(parts, chosen)
    return replace(
        built, cut_messages=cut_messages + cut, conversation_room=max(conversation_room, 0)
    )


def _assembled(given: prompt.PromptParts, chosen: prompt.PromptParts) -> prompt.Prompt:
    system = ChatMessage("system", prompt.system_text(chosen))
    messages = [system, *chosen.history]
    pairs = zip(given.recalled, chosen.recalled, strict=False)
    return prompt.Prompt(
        messages=messages,
        tokens=sum(message.tokens for message in messages),
        dropped_recalled=len(given.recalled) - len(chosen.recalled),
        dropped_history=len(given.history) - len(chosen.history),
        kept_recalled=tuple(chosen.recalled),
        kept_cards=len(chosen.cards),
        kept_person=chosen.person is not None,
        cut_recalled=sum(one.content != other.content for one, other in pairs),
    )


def _tokens_of(text: prompt.Recalled, parts: prompt.PromptParts) -> int:
    return estimate_tokens(prompt.recalled_text(text, parts.time_zone)) + ROUNDING


def _recalled_within(
    parts: prompt.PromptParts, room: int, *, longest: int
) -> list[prompt.Recalled]:
    """Return the first recalled texts that fit, long ones as the passage that fits the query."""
    kept: list[prompt.Recalled] = []
    for place, text in enumerate(parts.recalled):
        share = room // (len(parts.recalled) - place)
        short = _shortened(text, parts, max(min(longest, share), MIN_PASSAGE))
        if _tokens_of(short, parts) > room:
            short = replace(short, around=())
        if _tokens_of(short, parts) > room:
            break
        room -= _tokens_of(short, parts)
        kept.append(short)
    return kept


def _shortened(text: prompt.Recalled, parts: prompt.PromptParts, tokens: int) -> prompt.Recalled:
    if estimate_tokens(text.content) <= max(tokens, PASSAGE):
        return text
    return replace(text, content=best_passage(text.content, parts.query, tokens=tokens))


def _summary_within(parts: prompt.PromptParts, left: int, *, needed: int) -> str:
    """Return the summary; half of the room stays for the history if it needs so much."""
    room = max(left // 2, left - needed)
    if room < MIN_CUT:
        return ""
    return cut_to_tokens(parts.summary, room)


def _cards_within(parts: prompt.PromptParts, left: int) -> tuple[int, int]:
    """Return how many of the newest cards fit, and the room that is left then."""
    for place, card in enumerate(parts.cards):
        tokens = estimate_tokens(prompt.card_text(card, parts.time_zone)) + ROUNDING
        if tokens > left:
            # Nor is there room for what is left out before cards.
            return place, 0
        left -= tokens
    return len(parts.cards), left


# The history of a prompt: what chat APIs take of it, and which turns fit. Pure.


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
