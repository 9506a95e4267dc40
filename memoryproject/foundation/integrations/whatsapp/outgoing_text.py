"""Format a model's answer for WhatsApp and cut it into parts that a provider accepts."""

from __future__ import annotations

import re

from memoryproject.foundation.text.characters import cut_at_word, cut_between_characters
from memoryproject.foundation.text.chunks import SENTENCE_END

# Placeholders for parts that later steps must not change; they can't occur in a text that we send.
_KEPT, _BOLD, _ITALIC = "\x00", "\x01", "\x02"

_STAND_INS = str.maketrans("", "", _KEPT + _BOLD + _ITALIC)

_FENCE = re.compile(r"\s{0,3}(```+|~~~+)(.*)", re.DOTALL)

_HEADING = re.compile(r"\s{0,3}#{1,6}\s")

_RULE = re.compile(r"\s{0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})")

_BULLET = re.compile(r"(\s*(?:>\s?)*(?:[*+-]\s+)?)(.*)", re.DOTALL)

_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.*?[^`])\1(?!`)")

_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!~>|])")

_URL_PART = r"(?:[^\s()<>]|\([^\s()<>]*\))+"

_LINK = re.compile(rf"!?\[([^\[\]]*)\]\(\s*<?({_URL_PART})>?(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")

_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]+)>")

_BARE_URL = re.compile(r"https?://[^\s<>*]+")

_BOTH = re.compile(r"\*\*\*(?=[^\s*])([^*]*[^\s*])\*\*\*")

_STRONG = re.compile(r"\*\*(?=\S)((?:[^*]|\*(?!\*))*[^\s*])\*\*(?!\*)")

_STRONG_UNDERSCORE = re.compile(r"(?<!\w)__(?=[^\s_])([^_]*(?:_[^_]+)*[^\s_])__(?!\w)")

# It may end right where bold ends, never next to a word: 2*3*4 is arithmetic.
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]*[^\s*])\*(?!\w)(?!\*(?!\*))")

_STRUCK = re.compile(r"~~(?=[^\s~])([^~]*[^\s~])~~")


def to_whatsapp(markdown: str) -> str:
    """Return the text in WhatsApp's format. Code keeps its content; words are never lost."""
    lines: list[str] = []
    fence = ""
    for line in markdown.translate(_STAND_INS).split("\n"):
        marker = _FENCE.fullmatch(line)
        if fence:
            closes = marker is not None and _closes(marker, fence)
            lines.append("```" if closes else line)
            fence = "" if closes else fence
        elif marker is not None and "`" not in marker.group(2):
            fence = marker.group(1)
            # WhatsApp would show the language's name as the first line of the code.
            lines.append("```")
        else:
            lines.append(_line(line))
    return "\n".join(lines)


def _closes(marker: re.Match[str], fence: str) -> bool:
    return marker.group(1).startswith(fence) and not marker.group(2).strip()


def _line(line: str) -> str:
    if _RULE.fullmatch(line):
        return line
    heading = _HEADING.match(line)
    if heading is not None:
        # Bold inside bold would end it.
        title = _inline(_unclosed(line[heading.end() :].strip())).replace("*", "").strip()
        return f"*{title}*" if title else ""
    bullet = _BULLET.fullmatch(line)
    if bullet is None:
        return _inline(line)
    return bullet.group(1) + _inline(bullet.group(2))


def _unclosed(title: str) -> str:
    """Return a heading's text without the # that may close it."""
    bare = title.rstrip("#")
    return bare.rstrip() if bare[-1:].isspace() else title


def _inline(text: str) -> str:
    kept: list[str] = []

    def keep(shown: str) -> str:
        kept.append(shown)
        return f"{_KEPT}{len(kept) - 1}{_KEPT}"

    text = _CODE.sub(lambda found: keep(found.group()), text)
    text = _ESCAPE.sub(lambda found: keep(found.group(1)), text)
    text = _LINK.sub(lambda found: _link(found.group(1), keep(found.group(2)), kept), text)
    text = _AUTOLINK.sub(lambda found: keep(found.group(1)), text)
    text = _BARE_URL.sub(lambda found: keep(found.group()), text)
    return _restored(_emphasised(text), kept)


def _link(label: str, address: str, kept: list[str]) -> str:
    """Return ``label (address)``, or the address alone if the label is the same or empty."""
    target = kept[-1]
    text = label.strip()
    return address if text in ("", target, target.partition("://")[2]) else f"{text} ({address})"


def _emphasised(text: str) -> str:
    text = _BOTH.sub(rf"{_BOLD}{_ITALIC}\1{_ITALIC}{_BOLD}", text)
    text = _EMPHASIS.sub(rf"{_ITALIC}\1{_ITALIC}", text)
    text = _STRONG.sub(rf"{_BOLD}\1{_BOLD}", text)
    text = _STRONG_UNDERSCORE.sub(rf"{_BOLD}\1{_BOLD}", text)
    text = _STRUCK.sub(r"~\1~", text)
    return text.replace(_BOLD, "*").replace(_ITALIC, "_")


def _restored(text: str, kept: list[str]) -> str:
    """Restore the kept parts; a link's address may itself contain kept parts."""
    pattern = re.compile(rf"{_KEPT}([0-9]+){_KEPT}")
    while pattern.search(text):
        text = pattern.sub(lambda found: kept[int(found.group(1))], text)
    return text


_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")

# A line's end counts as a sentence's end: lists have no full stops.
_SENTENCE = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]*_~]*\s+|\n\s*")

_WORD = re.compile(r"\s+")


def text_length(text: str) -> int:
    """Return the text's length in UTF-16 code units.

    The providers don't document their unit. This is the unit of JavaScript and Java. It is never
    less than the number of code points, so a text within the limit is within it by both units.
    """
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def split_text(text: str, limit: int) -> list[str]:
    """Return the text in parts of at most ``limit`` UTF-16 code units, in order.

    A part ends after a paragraph, else a sentence or line, else a word, else between two characters
    as a reader sees them. White space at a cut is dropped, nothing else is. A text without visible
    characters gives no part. Raises ValueError for a limit below 2, because some characters need
    two units.
    """
    if limit < 2:
        raise ValueError("limit must be at least 2")
    parts: list[str] = []
    rest = text
    while text_length(rest) > limit:
        room = _fitting(rest, limit)
        # White space that begins right after the limit is a good place to cut, too.
        ahead = _WORD.match(rest, room)
        window_end = ahead.end() if ahead else room
        cut, resume = _place(rest, room, window_end)
        parts.append(rest[:cut])
        rest = rest[resume:]
    parts.append(rest)
    return [part for part in parts if part.strip()]


def _fitting(text: str, limit: int) -> int:
    """Return the number of characters from the start that fit into the limit."""
    units = 0
    for index, character in enumerate(text):
        units += 2 if ord(character) > 0xFFFF else 1
        if units > limit:
            return index
    return len(text)


def _place(text: str, room: int, window_end: int) -> tuple[int, int]:
    """Return the end of this part (at most ``room``) and the start of the next."""
    first_seen = len(text) - len(text.lstrip())
    for pattern in (_PARAGRAPH, _SENTENCE, _WORD):
        best = None
        for pause in pattern.finditer(text, first_seen, window_end):
            if pause.start() + len(pause.group().rstrip()) <= room:
                best = pause
        if best is not None:
            # A sentence's closing quotes stay in the part, the white space at the cut is dropped.
            return len(text[: best.end()].rstrip()), best.end()
    cut = cut_between_characters(text, room)
    return cut, cut


# A list's number is no end of a sentence.
_LIST_NUMBER = re.compile(r"\s*\d{1,4}[.)]")


# An answer that was cut ends with a sentence where so much of it is kept.
KEPT_SHARE = 0.25


def text_within(text: str, limit: int, parts: int, note: str) -> str:
    """Return as much of a model's answer as is sent in at most ``parts`` parts.

    What isn't the whole ends with a sentence and ``note``. ``limit`` is that of one part, in UTF-16
    code units.
    """
    kept, room = text, parts * limit
    while len(split_text(to_whatsapp(kept), limit)) > parts:
        kept = f"{whole_sentences(text[:room])}\n\n{note}"
        # In WhatsApp's form a text may be longer, and a part may end early.
        room = room * 9 // 10
    return kept


def whole_sentences(text: str) -> str:
    """Return a text that was cut off, without its last, unfinished sentence.

    Where that would be most of it, the text ends after its last whole word. An open code block is
    closed.
    """
    text = text.rstrip()
    ends = [found.end() for found in SENTENCE_END.finditer(f"{text} ")]
    ends = [end for end in ends if not _LIST_NUMBER.fullmatch(text[:end].rpartition("\n")[2])]
    last = ends[-1] if ends else 0
    kept = text[:last].rstrip()
    if KEPT_SHARE * len(text) > last:
        # The last word may be a part of one.
        kept = cut_at_word(text, len(text) - 1) if len(text) > 2 else text
    return f"{kept}\n```" if kept.count("```") % 2 else kept
