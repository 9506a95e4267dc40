"""Put lines of Hebrew and Arabic from a PDF into reading order.

A PDF stores letters by their position on the page. pypdf reverses each stretch of right-to-left
letters, but leaves the stretches of a line in their order from left to right: it turns
"המחיר הוא 100 שקל" into "שקל", "100", "המחיר הוא". No rule can decide the order where a line
breaks in the middle of a stretch of the other direction. Names in Latin letters at the beginning
of a line may end up at its end.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_RTL = ("R", "AL")
_LTR = ("L", "EN", "AN")
# No line begins with one of these: it ended the sentence, at the left.
_ENDING = re.compile(r"\s*([.,!?:;]+)")
_PUNCTUATED = re.compile(r"[^\s]+")
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_FINALS = "םןץףך"
_HEBREW_WORD = re.compile("[א-ת]{2,}")


@dataclass
class _Stretch:
    """Letters of one direction, with the neutral characters before and after them."""

    rtl: bool
    text: str
    lead: str = ""
    trail: str = ""

    def written(self) -> str:
        if self.rtl:
            return self.lead + self.text + self.trail
        # On paper, the text to the right of it comes first.
        return self.trail + self.text


def in_reading_order(text: str) -> str:
    """Return a page's text in reading order.

    The text is unchanged where most of its letters run from left to right.
    """
    directions = [unicodedata.bidirectional(char) for char in text if char.isalpha()]
    if 2 * sum(direction in _RTL for direction in directions) <= len(directions):
        return text
    line_of = _turned_back if _is_mirrored(text) else _reordered
    return "\n".join(map(line_of, text.split("\n")))


def _is_mirrored(text: str) -> bool:
    """Return whether words begin with letters that only end words.

    In that case the file stored them in reading order, and pypdf reversed them.
    """
    words = _HEBREW_WORD.findall(text)
    begin = sum(word[0] in _FINALS for word in words)
    return begin > sum(word[-1] in _FINALS for word in words)


def _turned_back(line: str) -> str:
    """Reverse each stretch again; the order of the stretches is already correct."""
    stretches = _stretches(line)
    return (
        "".join(
            each.trail[::-1] + each.text[::-1] + each.lead[::-1]
            if each.rtl
            else each.lead + each.text + each.trail
            for each in stretches
        )
        or line
    )


def _reordered(line: str) -> str:
    stretches = _stretches(line)
    letters = [sum(map(str.isalpha, each.text)) * (1 if each.rtl else -1) for each in stretches]
    rtl = sum(count for count in letters if count > 0)
    if not rtl or sum(letters) < -rtl:
        # More than twice as many letters run from left to right: it is a left-to-right line.
        return line
    ending = ""
    first = stretches[0]
    found = _ENDING.match(first.lead) if first.rtl else None
    if found:
        ending, first.lead = found[1], first.lead[found.end() :]
    whole = "".join(each.written() for each in reversed(stretches)).strip() + ending
    return whole.translate(_MIRRORED) if _brackets_are_mirrored(whole) else whole


def _brackets_are_mirrored(line: str) -> bool:
    opening, closing = line.find("("), line.find(")")
    return closing >= 0 and (opening < 0 or closing < opening)


def _stretches(line: str) -> list[_Stretch]:
    """Return the line's stretches from left to right.

    Each stretch has its share of the neutral characters between the stretches.
    """
    found: list[_Stretch] = []
    gap = ""
    for char in line:
        direction = unicodedata.bidirectional(char)
        if direction not in _RTL and direction not in _LTR:
            gap += char
            continue
        rtl = direction in _RTL
        if found and found[-1].rtl == rtl:
            found[-1].text += gap + char
        else:
            found.append(_Stretch(rtl, char, lead=gap))
        gap = ""
    if found:
        found[-1].trail = gap
    _share_gaps(found)
    return found


def _share_gaps(found: list[_Stretch]) -> None:
    """Assign each gap, so far the later stretch's lead, to the stretch that it belongs to."""
    for place in range(1, len(found)):
        before, after = found[place - 1], found[place]
        if before.rtl:
            # On paper, the gap is at the left of the letters, where they end.
            before.trail, after.lead = after.lead, ""
        elif place == len(found) - 1:
            before.trail, after.lead = after.lead, ""
        elif after.lead.isspace():
            # One space may count for both sides of the later stretch.
            before.trail, after.lead = " ", " "
        else:
            mark = _PUNCTUATED.match(after.lead)
            cut = mark.end() if mark else 0
            before.trail, after.lead = after.lead[:cut], after.lead[cut:]
