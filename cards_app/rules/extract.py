"""Summarise a conversation with its own sentences, for use without a chat model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cards_app.rules.fragments import (
    Fragment,
    Kind,
    find_fragments,
    first_request,
    informative_words,
    same_words,
)
from cards_app.rules.hebrew_names import is_hebrew
from cards_app.rules.lines import Line
from cards_app.rules.speakers import SectionWords, section_words, spoken
from cards_app.rules.vocabulary import find_entities, is_keyword
from cards_app.rules.words import folded, split_words, without_points

MIN_SUMMARY_LENGTH = 40
MAX_BULLET_LENGTH = 240
MIN_BULLET_LENGTH = 60
# In the first round no section takes more than this share, except for one bullet, so that a chat
# full of tasks leaves room for its facts.
SECTION_SHARE = 0.4
NAMES_SHARE = 0.12
MAX_NAMES = 12
# The minimum frequency of a keyword in the line of names.
OFTEN = 3
# From this length on there is room for a line of names after the bullets.
ROOM_FOR_NAMES = 300


def extractive_summary(lines: Sequence[Line], *, longest: int) -> str:
    """Return the topics of the conversation in at most ``longest`` characters.

    The summary starts with the first request and lists decisions, open points, questions and
    other statements, then names that none of them contains. All text is verbatim except section
    names, speakers, "…" and the niqqud of names. If there isn't room for all, sentences with
    figures, money, days and names are preferred, and newer ones over older ones.

    Nothing is redacted, unlike on a card: the summary stays in its chat, and people ask for the
    numbers and names later. ``lines`` are the messages themselves, not an earlier summary. The
    result is "" if there is no text. Raises ValueError for ``longest`` below 40, which is too
    short for a sentence.
    """
    if longest < MIN_SUMMARY_LENGTH:
        raise ValueError(f"longest must be at least {MIN_SUMMARY_LENGTH}")
    written = [line for line in lines if line.content.strip()]
    if not written:
        return ""
    words = section_words(written)
    width = max(MIN_BULLET_LENGTH, min(MAX_BULLET_LENGTH, longest // 3))
    role, request = first_request(written, longest=width)
    about = f"{words.about}: "
    about += spoken(words.speaker(role), request, longest=longest - len(about))
    request_words = same_words(request)
    fragments = find_fragments(written, longest=width)
    rest = [each for each in fragments if each.worth and same_words(each.text) != request_words]
    room = longest - len(about)
    names = _candidates(written)
    # Choose once with room for all names, then with the room that the missing names leave.
    named = " " * (int(longest * NAMES_SHARE) if longest >= ROOM_FOR_NAMES else 0)
    for _ in range(2):
        chosen = _choose(rest, words, room=room - len(named))
        body = about + _rendered(chosen, words)
        named = _named(names, words, body=body, room=longest - len(body))
    return body + named


def _choose(fragments: Sequence[Fragment], words: SectionWords, *, room: int) -> list[Fragment]:
    """Return the most valuable fragments that fit, in the order of the conversation."""
    ranked = sorted(fragments, key=lambda each: (-each.worth, -each.place))
    chosen: dict[int, Fragment] = {}
    spent = dict.fromkeys(Kind, 0)
    for share in (SECTION_SHARE, 1.0):
        for each in ranked:
            cost = len(_bullet(each, words))
            if not spent[each.kind]:
                cost += len(_heading(each.kind, words))
            fits = sum(spent.values()) + cost <= room
            in_share = not spent[each.kind] or spent[each.kind] + cost <= share * room
            if each.place not in chosen and fits and in_share:
                chosen[each.place] = each
                spent[each.kind] += cost
    return [chosen[place] for place in sorted(chosen)]


def _rendered(fragments: Iterable[Fragment], words: SectionWords) -> str:
    sections: dict[Kind, str] = {}
    for each in fragments:
        start = sections.get(each.kind, _heading(each.kind, words))
        sections[each.kind] = start + _bullet(each, words)
    return "".join(sections[kind] for kind in Kind if kind in sections)


def _heading(kind: Kind, words: SectionWords) -> str:
    names = {
        Kind.DECISION: words.decisions,
        Kind.TODO: words.todos,
        Kind.QUESTION: words.questions,
        Kind.DETAIL: words.details,
    }
    return f"\n{names[kind]}:"


def _bullet(fragment: Fragment, words: SectionWords) -> str:
    return f"\n- {words.speaker(fragment.role)}{fragment.text}"


def _named(names: Sequence[str], words: SectionWords, *, body: str, room: int) -> str:
    """Return a line of the names that the summary doesn't contain yet; "" if there are none."""
    summary_words = {folded(word) for word in split_words(body)}
    plain = without_points(body)
    # A Hebrew name may have prefix letters there.
    missing = [
        name
        for name in names
        if folded(name) not in summary_words and not (is_hebrew(name) and name in plain)
    ]
    line = ""
    for name in missing[:MAX_NAMES]:
        longer = f"{line}, {name}" if line else f"\n{words.names}: {name}"
        if len(longer) > room:
            break
        line = longer
    return line


def _candidates(lines: Sequence[Line]) -> list[str]:
    """Return names, then keywords in their first spelling; the most frequent first."""
    spelled: dict[str, str] = {}
    count: dict[str, int] = {}
    for line in lines:
        for word in split_words(line.content):
            key = folded(word)
            spelled.setdefault(key, word)
            count[key] = count.get(key, 0) + 1
    names = find_entities(lines, most=None)
    known = {folded(name) for name in names}
    frequent = [key for key in count if count[key] >= OFTEN and key not in known]
    keywords = [key for key in frequent if is_keyword(key) and informative_words(key)]
    keywords.sort(key=lambda key: -count[key])
    return names + [spelled[key] for key in keywords]
