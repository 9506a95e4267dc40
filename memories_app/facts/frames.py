"""Frames: statements with their value left open.

Two texts with the same frame and different values can't both be true at the same time. The
patterns of attributes are in ``frames.json``.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from memories_app.facts import fact_parser, lexicon
from memories_app.facts.validity import MAX_STATEMENT, names_day
from memoryproject.foundation.text.tokenizer import stem

# Longer texts state more than one thing.
MAX_TOKENS = 20
MAX_SUBJECT = 6
MAX_VALUE = 4
# The name of a place that isn't known.
MAX_NAME = 2
# So many digits without a currency are a telephone number or another identifier.
NAMING_DIGITS = 6

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _words(name: str) -> str:
    return "|".join(_TABLE[name])


_BECAME = re.compile(
    rf"\b(?:(?:has|have|was|were|got|is|are|been)\s+){{0,4}}(?:{_words('became')})\s+to\b"
)
_COLON = re.compile(r"(?<=\w):(?=\s)")
_DIGITS = re.compile(r"\D*(-?\d[\d.:]*)(?:am)?\D*")
_LEFT_OUT = lexicon.ARTICLES | lexicon.FILLERS | lexicon.RENEWALS
_TAKES_A_VALUE = lexicon.AMOUNT_VERBS | lexicon.COPULAS | lexicon.ATTRIBUTES
_MAY_BE_ON_A_DAY = lexicon.DAY_VERBS | lexicon.COPULAS
_OF_PERSONS = lexicon.ROLES | lexicon.NAMES
_NOT_IN_NEGATIONS = lexicon.HELPERS | lexicon.NEGATION_TAILS

VALUE, NEGATION, ATTRIBUTE = "value", "negation", "attribute"


@dataclass(frozen=True)
class Frame:
    """A statement with its value. ``key`` is equal for texts with the same frame of a ``kind``.

    ``values`` fills the frame: one or several values in order, "yes" or "no", or the words of
    an attribute. ``sure``: two values can't be true at the same time; None: it isn't certain that
    this is the attribute's value at all. ``named``: a role or a name has a value with a capital
    letter; None: that isn't known, or doesn't count. ``several``: there may be several such things,
    such as the names of children.
    """

    kind: str
    key: str
    values: tuple[str, ...]
    sure: bool | None = True
    named: bool | None = None
    several: bool = False

    def conflicts_with(self, other: "Frame", *, renewed: bool) -> bool:
        """Return whether two frames with the same key have different values.

        ``renewed``: this one is said to be new, so that all of its values may differ.
        """
        if self.several and not renewed:
            return False
        if self.kind == ATTRIBUTE:
            if {self.named, other.named} == {True, False}:
                # "My boss is strict" doesn't tell who it is.
                return False
            tails = _tail(self.values), _tail(other.values)
            own, others = set(self.values), set(other.values)
            if (all(tails) and tails[0] != tails[1]) or (own ^ others) & lexicon.PLACES:
                # "20 for kids" and "40 for adults", or "upstairs" and "downstairs": both are true.
                return False
            if len(own) == len(others) == 1:
                return not _says_the_same(self.values[0], other.values[0])
            # "John Smith" only adds detail to "John".
            return not own <= others and not others <= own
        differing = [
            (own, others)
            for own, others in zip(self.values, other.values, strict=True)
            if not _says_the_same(own, others)
        ]
        return len(differing) == 1 or (renewed and bool(differing))


def _tail(values: Sequence[str]) -> frozenset[str]:
    """Return the words behind a value: behind its numbers, or from a preposition on."""
    is_number = [any(map(str.isdigit, word)) for word in values]
    ends = (place for place, word in enumerate(values) if word in lexicon.BEHIND_VALUE)
    first = next(ends, len(values))
    if is_number[0]:
        first = min(first, (*is_number, False).index(False))
    return frozenset(values[first:]) - lexicon.BEHIND_VALUE


def _says_the_same(one: str, other: str) -> bool:
    """Return whether two values agree; 40 and ₪40, or 9 and 9 am, differ only in detail."""
    if one == other:
        return True
    first, second = _DIGITS.fullmatch(one), _DIGITS.fullmatch(other)
    return bool(
        first and second and first[1] == second[1] and (one == first[1] or other == second[1])
    )


def frames_of(
    folded_text: str,
    read_tokens: Sequence[fact_parser.Token],
    hashed: Callable[[str], str],
    capitals: Set[str] | None = None,
) -> Iterator[Frame]:
    """Yield the frames of a text that went through ``pivot``; ``read_tokens`` are its tokens.

    ``capitals``: the words with a capital letter, where the writer uses these. There are no frames
    unless the text is one plain statement about something that it names.
    """
    text = _COLON.sub(" is", _BECAME.sub(" is ", folded_text), count=1)
    same = text == folded_text
    tokens = [
        token
        for token in (read_tokens if same else fact_parser.tokens_of(text))
        if token.text not in _LEFT_OUT
    ]
    words = {token.text for token in tokens}
    if not 2 <= len(tokens) <= MAX_TOKENS or words & lexicon.NOT_PLAIN:
        return
    if tokens[0].text in lexicon.CONDITIONS:
        return
    if tokens[0].text in lexicon.POINTERS and tokens[0].text != "there":
        return
    for kind, found in (
        (VALUE, _value_frame(tokens)),
        (NEGATION, _negation_frame(tokens)),
        (ATTRIBUTE, _attribute_frame(tokens)),
    ):
        if found is not None:
            key, values = found
            is_person = kind == ATTRIBUTE and not _OF_PERSONS.isdisjoint(key.split())
            named = _is_named(values, capitals) if is_person else None
            is_name = is_person and not words.isdisjoint(lexicon.NAMES)
            several = is_name and any(map(lexicon.is_several, words))
            yield Frame(kind, hashed(f"{kind} {key}"), values, named=named, several=several)
    for name, values, is_sure in attributes_of(folded_text, capitals):
        named = _is_named(values, capitals) if name.startswith("role ") else None
        yield Frame(ATTRIBUTE, hashed(f"{ATTRIBUTE} of {name}"), values, is_sure, named)


def _is_named(values: Sequence[str], capitals: Set[str] | None) -> bool | None:
    return None if capitals is None else not capitals.isdisjoint(values)


def _value_frame(tokens: list[fact_parser.Token]) -> tuple[str, tuple[str, ...]] | None:
    """Return the frame of a statement such as "TestCorp owes me □ from invoice INV-001"."""
    slots = _slots(tokens)
    if not slots or not any(
        token.kind in (fact_parser.WORD, fact_parser.NAME) for token in tokens[: min(slots)]
    ):
        return None
    frame = []
    for place, token in enumerate(tokens):
        if place in slots:
            frame.append("□")
        elif token.text not in lexicon.COPULAS and not (
            token.text in lexicon.TIME_PREPOSITIONS and place + 1 in slots
        ):
            frame.append(token.text)
    return " ".join(frame), tuple(tokens[place].text for place in sorted(slots))


def _slots(tokens: list[fact_parser.Token]) -> set[int]:
    """Return the places of the values that directly follow a word that takes a value."""
    slots = set()
    for place, token in enumerate(tokens):
        if token.kind != fact_parser.WORD or token.text not in _TAKES_A_VALUE:
            continue
        said_later = any(later.text in lexicon.COPULAS for later in tokens[place + 2 :])
        if token.text in lexicon.ATTRIBUTES and said_later:
            # "Size 40 is in stock": 40 identifies the size and isn't the value of a statement.
            continue
        after = place + 1
        while after < len(tokens) and tokens[after].text in lexicon.BETWEEN:
            after += 1
        if after < len(tokens) and _may_follow(token.text, tokens[after]):
            slots.add(after)
    return slots


def _may_follow(word: str, value: fact_parser.Token) -> bool:
    if value.kind not in fact_parser.VALUES:
        return False
    if value.kind in (fact_parser.WEEKDAY, fact_parser.DATE):
        return word in _MAY_BE_ON_A_DAY
    if word in lexicon.NUMBERED:
        return False
    return value.kind in (fact_parser.TIME, fact_parser.RANGE) or not _is_naming(value)


def _is_naming(value: fact_parser.Token) -> bool:
    return (
        value.kind == fact_parser.NUMBER
        and value.text.isdigit()
        and len(value.text) >= NAMING_DIGITS
    )


def _negation_frame(tokens: list[fact_parser.Token]) -> tuple[str, tuple[str, ...]] | None:
    """Return the frame of a statement such as "Dana (doesn't) like sushi"."""
    if any(token.text in lexicon.NO_FLIP for token in tokens):
        return None
    if tokens[0].text in lexicon.NOT_ALL:
        return None
    flips = 0
    frame: list[str] = []
    for token in tokens:
        text = token.text
        if text in lexicon.NEGATIONS:
            flips += 1
        elif text in lexicon.NO_THERE_IS:
            flips += 1
            frame.append(lexicon.THERE_IS)
        elif text in lexicon.ANTONYMS:
            flips += 1
            frame.append(stem(lexicon.ANTONYMS[text]))
        elif text not in _NOT_IN_NEGATIONS:
            frame.append(stem(text) if token.kind == fact_parser.WORD else text)
    if flips > 1 or len(frame) < 2:
        return None
    return " ".join(frame), ("no" if flips else "yes",)


def _attribute_frame(tokens: list[fact_parser.Token]) -> tuple[str, tuple[str, ...]] | None:
    """Return the frame of a statement such as "The CEO of TestCorp is □"."""
    copulas = [place for place, token in enumerate(tokens) if token.text in lexicon.COPULAS]
    if len(copulas) != 1 or any(token.text in lexicon.NEGATIONS for token in tokens):
        return None
    subject = [token.text for token in tokens[: copulas[0]]]
    value = [token.text for token in tokens[copulas[0] + 1 :] if token.text not in ("at", "on")]
    if not 1 <= len(subject) <= MAX_SUBJECT or not 1 <= len(value) <= MAX_VALUE:
        return None
    ends = {subject[0], subject[-1]} & lexicon.ATTRIBUTES
    wanted = {"favorite", "favourite", "preferred"} & set(subject)
    if not ends and not wanted:
        return None
    where = tokens[copulas[0] + 1].text
    if where in lexicon.PLACED and ends & lexicon.ROLES and not names_day(value[-1]):
        # Where the boss is doesn't tell who it is.
        subject.append("where")
    return " ".join(subject), tuple(value)


# Attributes that have one value at a time, however and in whatever language they are said.


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of the table, in which each «…» stands for one of its parts."""
    while "«" in pattern:
        pattern = re.sub("«([^«»]+)»", lambda found: _TABLE["parts"][found[1]], pattern)
    return re.compile(pattern)


# A value that is said to be new takes the older one's place also where both could be true.
RENEWING = re.compile(rf"(?<!\w)(?:{_words('renewing')})(?!\w)")
_FILLERS = re.compile(rf"(?<!\w)(?:{_words('fillers')})(?!\w)[,:]?|(?<=\w)'ve(?!\w)")
# The name of the attribute, the pattern, and whether it can have one value only. ``of`` belongs to
# the name. "Moved dwelling" is what the phrases write where a flat or a house is named.
_ATTRIBUTES = [(name, _compiled(pattern), one) for name, pattern, one in _TABLE["attributes"]]
_OF_PLACES = ("i live", "lives", "i work", "works", "place")
_IS = re.compile(r"(?<!\w)(?:is|are|הוא|היא)(?!\w)")
_ARTICLE = re.compile(rf"^(?:{_words('articles')})\s+|^(?:l'|ה(?=[א-ת]{{3}}))")
_WORD = re.compile(r"\w+(?:[.:@'-]\w+)*")


def attributes_of(
    pivot_text: str, capitals: Set[str] | None = None
) -> Iterator[tuple[str, tuple[str, ...], bool | None]]:
    """Yield the attributes that a text states, of which there are seldom several.

    Each has a name, its value, and whether two values can't be true at the same time; None: it may
    state something else.
    """
    if len(pivot_text) > MAX_STATEMENT:
        return
    text = " ".join(_FILLERS.sub(" ", pivot_text).split()).strip(" .,!;")
    for name, pattern, one in _ATTRIBUTES:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        home = found.groupdict().get("home")
        value = home.partition(",")[0] if home else found["value"]
        is_place = name in _OF_PLACES
        if (is_place and lexicon.NO_PLACE.match(value)) or (
            home and not _may_be_home(home, capitals)
        ):
            continue
        if name == "we are at" and (
            names_day(value.replace("days", "day")) or lexicon.NUMBERED & set(_WORD.findall(value))
        ):
            # "On floor 3", and where a market is on Sundays.
            continue
        if name == "when" and (not names_day(value) or _IS.search(value)):
            # "My coach on Monday is Tom" tells no day of the coach.
            continue
        of = found.groupdict().get("of") or ""
        if name == "role":
            # A woman's role is the same one.
            of = re.sub(r"(?<=[א-ת]{3})ת(?!\w)", "", of)
        of = " ".join(_WORD.findall(_ARTICLE.sub("", of.strip())))
        values = tuple(token.text for token in fact_parser.tokens_of(value.rstrip("h")))
        if name == "we are at":
            # The number of a house is no amount, with the rest behind it.
            values = tuple(sorted(values, key=str.isdigit))
        if values:
            is_known = not home or all(map(lexicon.is_place, home.split(",")))
            yield f"{name} {of}".strip(), values, one if is_known else None


def _may_be_home(value: str, capitals: Set[str] | None) -> bool:
    """Return whether what somebody "moved to" may be a place: it begins like one or is a name.

    Most such texts are about something else: "moved to monthly billing", "moved to the back row".
    """
    words = value.replace(",", " ").split()
    if any(lexicon.is_place(" ".join(words[:count])) for count in (1, 2, 3)):
        return True
    if lexicon.NO_HOME.search(value):
        return False
    if value == value.upper():
        # Hebrew and Arabic have no capitals.
        return len(words) == 1
    return len(words) <= MAX_NAME and capitals is not None and capitals >= set(words)
