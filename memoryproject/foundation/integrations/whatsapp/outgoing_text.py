"""Cut a text in WhatsApp's format into parts that a provider accepts."""

import re
from collections.abc import Iterator

from memoryproject.foundation.integrations.whatsapp.markdown import to_whatsapp
from memoryproject.foundation.text import characters, chunks

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")

# Lists have no full stops: an item is kept whole where that leaves no short part.
_LINE = re.compile(r"\n\s*")

_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]*_~]*\s+|(?<=[。！？])[」』”’）*_~]*\s*|\n\s*")

_WORD = re.compile(r"\s+")

_LEAST_SHARE = 0.5

_FENCE = "```"

# As WhatsApp reads marks: at the edges of words, within a line.
_MARKED = (
    re.compile(r"(?<![^\W_])\*(?=[^\s*])[^*\n]*(?<=\S)\*(?![^\W_])"),
    re.compile(r"(?<![^\W_])_(?=[^\s_])[^_\n]*(?<=\S)_(?![^\W_])"),
    re.compile(r"(?<![^\W_])~(?=[^\s~])[^~\n]*(?<=\S)~(?![^\W_])"),
    re.compile(r"(?<![^\W_])`(?=[^\s`])[^`\n]*(?<=\S)`(?![^\W_])"),
)

_BEGINNING = re.compile(r"\s*(?:```\n)?")

# In shorter parts than any provider's there is no room for marks.
_LEAST_FOR_MARKS = 64

_MAX_PARTS = 10


def text_length(text: str) -> int:
    """Return the text's length in UTF-16 code units.

    The providers don't document their unit. This is the unit of JavaScript and Java. It is never
    less than the number of code points, so a text within the limit is within it by both units.
    """
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def shortened(text: str, limit: int) -> str:
    """Return the text in one line, cut with "…" where it is longer than ``limit`` units."""
    line = " ".join(text.split())
    if text_length(line) <= limit:
        return line
    room = _fitting(line, limit - 1)
    return line[: characters.cut_between_characters(line, room)].rstrip() + "…"


def split_text(text: str, limit: int) -> list[str]:
    """Return the text in parts of at most ``limit`` UTF-16 code units, in order.

    A part ends after a paragraph, else a line, a sentence, a word, else between two characters as a
    reader sees them. White space at a cut is dropped, nothing else is. Bold and other marks, and
    blocks of code, that are open at a cut are closed there and opened again in the next part. A
    text without visible characters gives no part. Raises ValueError for a limit below 2, because
    some characters need two units.
    """
    if limit < 2:
        raise ValueError("limit must be at least 2")
    parts: list[str] = []
    rest = text
    while text_length(rest) > limit:
        part, rest = _first_part(rest, limit)
        parts.append(part)
    parts.append(rest)
    return [part for part in parts if part.strip()]


def _first_part(text: str, limit: int) -> tuple[str, str]:
    """Return the first part of a text that is too long, and the rest."""
    units = limit
    while True:
        room = _fitting(text, units)
        # White space that begins right after the limit is a good place to cut, too.
        ahead = _WORD.match(text, room)
        cut, resume = _place(text, room, ahead.end() if ahead else room)
        if limit < _LEAST_FOR_MARKS:
            return text[:cut], text[resume:]
        if text.count(_FENCE, 0, cut) % 2:
            part, rest = _cut_code(text, cut, resume)
        else:
            marks = "".join(_open_marks(text, cut, limit))
            part, rest = text[:cut] + marks[::-1], marks + text[resume:]
        if text_length(part) <= limit:
            return part, rest
        units -= text_length(part) - limit


def _cut_code(text: str, cut: int, resume: int) -> tuple[str, str]:
    """Return the two sides of a cut in a block of code, which keeps its indentation."""
    begin = text.rindex(_FENCE, 0, cut)
    if begin and not text[begin + len(_FENCE) : cut].strip():
        return text[:begin].rstrip(), text[begin:]
    rest = text[resume:]
    if rest.lstrip().startswith(_FENCE):
        rest = rest.lstrip().removeprefix(_FENCE).lstrip("\n")
    else:
        line = text.rfind("\n", cut, resume) + 1
        rest = f"{_FENCE}\n{text[line or resume :]}"
    return f"{text[:cut].rstrip()}\n{_FENCE}", rest


def _open_marks(text: str, cut: int, limit: int) -> Iterator[str]:
    """Yield the marks that are open at a place outside of a block of code, the outer ones first."""
    start = text.rfind("\n", 0, cut) + 1
    # A mark that is closed later than that counts as a character.
    furthest = cut + _MAX_PARTS * limit
    end = text.find("\n", cut, furthest)
    end = end if end >= 0 else furthest
    spans = (found.span() for each in _MARKED for found in each.finditer(text, start, end))
    for begin, _ in sorted(span for span in spans if span[0] < cut - 1 and cut < span[1]):
        yield text[begin]


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
    beginning = _BEGINNING.match(text)
    first_seen = beginning.end() if beginning else 0
    for pattern in (_PARAGRAPH, _LINE, _SENTENCE, _WORD):
        best = None
        for pause in pattern.finditer(text, first_seen, window_end):
            if pause.start() + len(pause.group().rstrip()) <= room:
                best = pause
        if best is not None and (pattern is not _LINE or best.start() >= room * _LEAST_SHARE):
            # A sentence's closing quotes stay in the part, the white space at the cut is dropped.
            return len(text[: best.end()].rstrip()), best.end()
    cut = characters.cut_between_characters(text, room)
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
    ends = [found.end() for found in chunks.SENTENCE_END.finditer(f"{text} ")]
    ends = [end for end in ends if not _LIST_NUMBER.fullmatch(text[:end].rpartition("\n")[2])]
    last = ends[-1] if ends else 0
    kept = text[:last].rstrip()
    if KEPT_SHARE * len(text) > last:
        # The last word may be a part of one.
        kept = characters.cut_at_word(text, len(text) - 1) if len(text) > 2 else text
    return f"{kept}\n```" if kept.count("```") % 2 else kept
