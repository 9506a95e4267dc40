"""Choose what of a prompt's parts fits into its limit. Pure.

The whole prompt fits ``max_context_tokens``, and the limit of the role. A small limit of a role
counts the conversation and what is remembered only: the fixed text alone would fill it.

Room is given in this order: the fixed text with the profile, the message that is answered, what
was recalled (at least a quarter of the rest, if there is so much of it), the summary, the passage,
the history from its end, the cards. A text that is too long for its room is cut, and a mark stands
for what is left out; the stored text stays whole. The history is left out by whole turns, so that
it never begins with an answer to a question that isn't there.
"""

from __future__ import annotations

from dataclasses import replace

from memoryproject.foundation.integrations.llm.base import ChatMessage
from memoryproject.foundation.retrieval.passages import best_passage
from memoryproject.foundation.text.characters import cut_to_tokens, estimate_tokens
from sessions_app.turns.prompt import (
    Profile,
    Prompt,
    PromptParts,
    Recalled,
    card_text,
    recalled_text,
    system_text,
)
from sessions_app.turns.prompt_history import (
    MIN_CUT,
    ROUNDING,
    divide_history,
    lines_tokens,
    newest_within,
    question_within,
    whole_within,
    widths_within,
)

# A lower limit of a role doesn't count the fixed text.
SMALL_LIMIT = 1_000
# The least room that the profile, and then the rest, have in any prompt.
MIN_PROFILE = 400
MIN_ROOM = 40
# A recalled text up to this length is whole or left out; of a longer one a passage is taken.
PASSAGE = 300
MIN_PASSAGE = 100


def build_prompt(parts: PromptParts) -> Prompt:
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


def least_tokens(parts: PromptParts) -> int:
    """Return the tokens of the fixed text and the message that is answered, both whole.

    Where something was done since that message, such as the call of a tool, the last of it is
    included.
    """
    found = divide_history(parts.history)
    return _fixed_tokens(parts) + lines_tokens(found.question) + lines_tokens(found.last)


def _least(parts: PromptParts, room: int) -> Prompt:
    """Build the prompt of the fixed text and the message that is answered alone."""
    found = divide_history(parts.history)
    history, cut = question_within([*found.question, *found.last], room)
    bare = replace(parts, recalled=(), cards=(), summary="", passage="", history=history)
    return replace(_assembled(parts, bare), cut_messages=cut, conversation_room=0)


def _limit(parts: PromptParts, fixed: int) -> int | None:
    """Return the limit of the whole prompt; None without one."""
    limits = []
    if parts.max_context_tokens is not None:
        limits.append(parts.max_context_tokens)
    if parts.role_tokens is not None:
        small = parts.role_tokens < SMALL_LIMIT
        limits.append(parts.role_tokens + (fixed if small else 0))
    return min(limits, default=None)


def _fixed_tokens(parts: PromptParts) -> int:
    bare = replace(parts, recalled=(), cards=(), summary="", passage="")
    return estimate_tokens(system_text(bare))


def _fence_tokens(parts: PromptParts) -> int:
    """Return the tokens of the words around what is remembered; 0 if nothing is."""
    if not (parts.recalled or parts.cards or parts.summary or parts.passage):
        return 0
    one = replace(parts, recalled=(), cards=(), summary="x", passage="x")
    return estimate_tokens(system_text(one)) - _fixed_tokens(parts) + ROUNDING


def _with_profile_within(parts: PromptParts) -> tuple[PromptParts, int]:
    """Shorten the longest texts of the profile if it leaves too little room for the rest.

    Returns how many of its texts were shortened.
    """
    given = [each for each in (parts.max_context_tokens, parts.role_tokens) if each is not None]
    room = max(min(given, default=0) // 2, MIN_PROFILE)
    if not given or _fixed_tokens(parts) <= room:
        return parts, 0
    profile = parts.profile
    texts = [profile.persona, profile.business_facts, profile.opening_hours]
    empty = replace(parts, profile=Profile(profile.name, languages=profile.languages))
    widths = widths_within(
        [estimate_tokens(text) for text in texts], room - _fixed_tokens(empty) - 10
    )
    short = [cut_to_tokens(text, width) for text, width in zip(texts, widths, strict=True)]
    persona, facts, hours = short
    shorter = replace(profile, persona=persona, business_facts=facts, opening_hours=hours)
    cut = sum(one != other for one, other in zip(texts, short, strict=True))
    return replace(parts, profile=shorter), cut


def _has_long_recalled(parts: PromptParts, limit: int) -> bool:
    longest = _longest_passage(limit)
    return any(estimate_tokens(text.content) > longest for text in parts.recalled)


def _longest_passage(room: int) -> int:
    """Return how much of one recalled text a prompt holds: much of it only where room is plenty."""
    return max(PASSAGE, room // 20)


def _within(parts: PromptParts, room: int) -> Prompt:
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
    cards = _cards_within(parts, left)
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
    )
    built = _assembled(parts, chosen)
    return replace(
        built, cut_messages=cut_messages + cut, conversation_room=max(conversation_room, 0)
    )


def _assembled(given: PromptParts, chosen: PromptParts) -> Prompt:
    system = ChatMessage("system", system_text(chosen))
    messages = [system, *chosen.history]
    pairs = zip(given.recalled, chosen.recalled, strict=False)
    return Prompt(
        messages=messages,
        tokens=sum(message.tokens for message in messages),
        dropped_recalled=len(given.recalled) - len(chosen.recalled),
        dropped_history=len(given.history) - len(chosen.history),
        kept_recalled=tuple(chosen.recalled),
        kept_cards=len(chosen.cards),
        cut_recalled=sum(one.content != other.content for one, other in pairs),
    )


def _tokens_of(text: Recalled, parts: PromptParts) -> int:
    return estimate_tokens(recalled_text(text, parts.time_zone)) + ROUNDING


def _recalled_within(parts: PromptParts, room: int, *, longest: int) -> list[Recalled]:
    """Return the first recalled texts that fit, long ones as the passage that fits the query."""
    kept: list[Recalled] = []
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


def _shortened(text: Recalled, parts: PromptParts, tokens: int) -> Recalled:
    if estimate_tokens(text.content) <= max(tokens, PASSAGE):
        return text
    return replace(text, content=best_passage(text.content, parts.query, tokens=tokens))


def _summary_within(parts: PromptParts, left: int, *, needed: int) -> str:
    """Return the summary; half of the room stays for the history if it needs so much."""
    room = max(left // 2, left - needed)
    if room < MIN_CUT:
        return ""
    return cut_to_tokens(parts.summary, room)


def _cards_within(parts: PromptParts, left: int) -> int:
    """Return how many of the newest cards fit."""
    for place, card in enumerate(parts.cards):
        left -= estimate_tokens(card_text(card, parts.time_zone)) + ROUNDING
        if left < 0:
            return place
    return len(parts.cards)
