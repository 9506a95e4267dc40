"""Characters: one spelling for equal words, cuts that tear no character, and token estimates."""

import re
import unicodedata

# Marks that readers leave out at will: Latin and Greek accents, Hebrew niqqud and cantillation,
# Arabic vowel signs and the tatweel. Vowel signs of Indic and Thai scripts are letters there.
_OPTIONAL_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640]"
)

# Direction marks, zero-width joiners and soft hyphens sit inside words and can't be seen.
_INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")

# Characters that show nothing, in the form of JSON Schema: white space and controls, invisible
# characters, and fillers.
BLANKS = (
    r"\s\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
)
# Besides, the tags and selectors of the last plane.
_NOTHING = re.compile(rf"[{BLANKS}\U000e0000-\U000e0fff]*")

# Final letters, and forms of Arabic letters between which writers choose at will.
_SAME_LETTER = {
    **str.maketrans("ךםןףץ", "כמנפצ"),
    **str.maketrans("أإآىة", "ااايه"),
    **str.maketrans("ς", "σ"),
}


def shows_nothing(text: str) -> bool:
    """Return whether a reader sees nothing of ``text``."""
    return _NOTHING.fullmatch(text) is not None


def readable(text: str) -> str:
    """Unify compatible characters in ``text``; remove invisible characters and optional marks.

    Case and final letters stay, because they distinguish names and word ends.
    """
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text))
    return unicodedata.normalize("NFKC", _OPTIONAL_MARKS.sub("", decomposed))


def fold(text: str) -> str:
    """Return the form in which words are compared. Folding twice changes nothing more."""
    if text.isascii():
        return text.lower()
    folded = _fold_once(text)
    # Folding one character can produce another that folds further (an iota below a letter, say).
    while (again := _fold_once(folded)) != folded:
        folded = again
    return folded


def _fold_once(text: str) -> str:
    return readable(text).casefold().translate(_SAME_LETTER)


CHARACTERS_A_TOKEN = 4

# A token is counted in twentieths: a character of Latin script, a digit, a space and a punctuation
# mark have 5 (seed 002: four characters a token). Other scripts have more. Measured with
# o200k_base, the tokenizer of the default model: docs/conversations.md has the figures.
_TWENTIETHS = 20
_LATIN = 5
_MORE_THAN_LATIN: tuple[tuple[re.Pattern[str], int], ...] = (
    # Cyrillic, and Arabic with its extensions and presentation forms: 7.
    (re.compile("[\u0400-\u052f\u0600-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc]+"), 2),
    # Greek, Armenian, Georgian, and the scripts of India and South-East Asia: 8.
    (
        re.compile(
            "[\u0370-\u03ff\u0530-\u058f\u0780-\u089f\u0900-\u10ff\u1200-\u1dff\u1f00-\u1fff]+"
        ),
        3,
    ),
    # Hebrew: 9.
    (re.compile("[\u0590-\u05ff\ufb1d-\ufb4f]+"), 4),
    # Japanese syllables, and Korean: 13.
    (re.compile("[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\uac00-\ud7af]+"), 8),
    # Chinese characters, and the marks and wide forms that stand with them: 16.
    (re.compile("[\u2e80-\u303f\u3190-\u9fff\uf900-\ufaff\uff00-\uffef]+"), 11),
    # Pictures: emoji, arrows, dingbats and all rare scripts: 30.
    (re.compile("[\u2190-\u2bff\U00010000-\U0010ffff]+"), 25),
)
# Every character below is counted as Latin.
_OTHER_SCRIPTS = re.compile("[\u0370-\U0010ffff]+")


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens of ``text``, without surrounding white space.

    For Latin script it is four characters a token (seed 002).
    """
    text = text.strip()
    weight = _LATIN * len(text)
    # A long text in Latin script with a dash or a picture is looked through once, not six times.
    others = "" if text.isascii() else "".join(_OTHER_SCRIPTS.findall(text))
    if others:
        weight += sum(
            more * sum(map(len, script.findall(others))) for script, more in _MORE_THAN_LATIN
        )
    return weight // _TWENTIETHS


def characters_within(text: str, tokens: int) -> int:
    """Return how many characters from the beginning of ``text`` have at most so many tokens."""
    low, high = 0, min(len(text), CHARACTERS_A_TOKEN * (tokens + 1) - 1)
    if tokens < 0:
        return 0
    # Usually the text is Latin, and the first look is enough.
    middle = high
    while low < high:
        if estimate_tokens(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


def cut_to_tokens(text: str, tokens: int, *, mark: str = "…") -> str:
    """Return the text in at most ``tokens`` tokens, cut at the end of a word.

    ``mark`` replaces the rest. It is all that is left where there is no room for a character.
    """
    if estimate_tokens(text) <= tokens:
        return text
    room = characters_within(text, tokens - estimate_tokens(mark) - 1)
    # The mark may be longer than what is too much.
    longest = min(room + len(mark), len(text) - 1)
    return cut_at_word(text, longest, mark=mark) if longest > len(mark) else mark


def cut_at_word(text: str, longest: int, *, mark: str = "…") -> str:
    """Return the text in at most ``longest`` characters, cut at the end of a word.

    ``mark`` replaces the rest. A single word that is too long is cut inside, between two characters
    as a reader sees them. ``longest`` is greater than the mark's length.
    """
    if len(text) <= longest:
        return text
    room = longest - len(mark)
    # The character after the limit is a space or part of a cut word: it is removed in both cases.
    whole_words = text[: room + 1].rpartition(" ")[0].rstrip()
    return (whole_words or text[: cut_between_characters(text, room)]) + mark


_JOINERS = "\u200d\ufe0e\ufe0f\u20e3"

_MAX_CLUSTER_LENGTH = 64


def cut_between_characters(text: str, room: int) -> int:
    """Return the last place up to ``room`` that doesn't split a character as a reader sees it."""
    if room >= len(text):
        return len(text)
    for cut in range(room, max(0, room - _MAX_CLUSTER_LENGTH), -1):
        if not _joined(text, cut):
            return cut
    return room


def is_mark(character: str) -> bool:
    """Return whether the character is a mark on the letter before it (accents, niqqud)."""
    return unicodedata.category(character).startswith("M")


def _joined(text: str, cut: int) -> bool:
    """Return whether the code points before and after the place belong together."""
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


HEBREW_LETTER = re.compile("[\u05d0-\u05ea]")

LATIN_LETTER = re.compile(r"[A-Za-z]")


def detect_language(text: str) -> str:
    """Return "he", "en" or "" for a text.

    "he": at least every third letter is Hebrew (names often stay in Latin letters). "en": other
    letters. "": the text has no letters.
    """
    hebrew = len(HEBREW_LETTER.findall(text))
    latin = len(LATIN_LETTER.findall(text))
    if hebrew and hebrew * 2 >= latin:
        return "he"
    return "en" if latin else ""


# Make a text of an outside service storable.


# All control characters but tab and line breaks. PostgreSQL refuses NUL; nobody can read the rest.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def storable(text: str) -> str:
    """Return the text without control characters and without halves of characters.

    Two halves that stand together become their character.
    """
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return _CONTROLS.sub("", text)


# Find a text in another one where it stands by itself: "ok" is no part of "book".

# A text that repeats itself may stand in another one at each of its characters. What it overlaps
# more often than this is searched no further: the time stays proportional to the lengths.
MAX_OVERLAP = 20


def whole_places(content: str, text: str) -> list[int] | None:
    """Return where the text begins, without word characters around it, from left to right.

    The places don't overlap. Returns None where the content is full of overlapping copies.
    """
    places: list[int] = []
    overlapped = 0
    at = content.find(text) if text else -1
    while at >= 0:
        end = at + len(text)
        if is_word_character(content[max(0, at - 1) : at]) or is_word_character(
            content[end : end + 1]
        ):
            overlapped += len(text)
            if overlapped > MAX_OVERLAP * len(content):
                return None
            at = content.find(text, at + 1)
        else:
            places.append(at)
            at = content.find(text, end)
    return places


def is_word_character(character: str) -> bool:
    """Return whether a character is one of those that \\w stands for; False for ""."""
    return character == "_" or character.isalnum()
