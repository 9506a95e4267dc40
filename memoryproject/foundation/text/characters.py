"""Characters as a reader sees them: where a text may be cut without tearing one."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200d\ufe0e\ufe0f\u20e3"
_MAX_CLUSTER_LENGTH = 64


def cut_between_characters(text: str, room: int) -> int:
    """The last place up to ``room`` that doesn't tear a character as a reader sees it."""
    if room >= len(text):
        return len(text)
    for cut in range(room, max(0, room - _MAX_CLUSTER_LENGTH), -1):
        if not _joined(text, cut):
            return cut
    return room


def is_mark(character: str) -> bool:
    """True for a mark that stands on or beside the letter before it (accents, niqqud)."""
    return unicodedata.category(character).startswith("M")


def _joined(text: str, cut: int) -> bool:
    """True if the code points before and after the place belong together."""
    before, after = text[cut - 1], text[cut]
    if after in _JOINERS or before == "\u200d" or is_mark(after):
        return True
    if 0x1F3FB <= ord(after) <= 0x1F3FF or 0xE0020 <= ord(after) <= 0xE007F:
        return True  # skin tones and the tags of regional flags
    if _is_flag_half(after):
        run = cut
        while run > 0 and _is_flag_half(text[run - 1]):
            run -= 1
        return (cut - run) % 2 == 1
    return False


def _is_flag_half(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF
