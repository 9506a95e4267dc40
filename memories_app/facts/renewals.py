"""Decide whether a statement that says it is new renews an older one, in any words.

"Now my hairdresser is Ira" renews "my hairdresser is Oleg": but for one place, both have the same
words. The words that say that something is new are those of ten languages (``renewals.json``).
"""

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import chain
from pathlib import Path

from memories_app.facts import lexicon
from memories_app.facts.validity import MAX_STATEMENT, names_day, without_periods
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.terms import word_forms
from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of, tokenize

MAX_WORDS = 14
MAX_VALUE = 4
_ARABIC = re.compile("[\u0600-\u06ff]")

# Who says that something holds no longer says it with other words than before: "I'm", "there is".
_CHANGING = {"i", "i'm", "im", "am", "m", "יש"}
_OF_NAME = re.compile(r"\b(?:of|d[aeo]s?|del|di|von|של) (\w+)")
_HEBREW_PLACE = re.compile("ב[א-ת]{2,}")
_CLAUSE = re.compile(r"[,;:.!،]\s+|\s[-–—]\s|\n")
_LISTS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


@cache
def _words(*names: str) -> re.Pattern[str]:
    words = "|".join(chain.from_iterable(_LISTS[name] for name in names))
    return re.compile(rf"(?<![\w'])[והבל]{{0,2}}-?(?:{fold(words)})(?![\w'])")


def says_new(content: str) -> bool:
    """Return whether a text says that what it states is new, has changed, or holds no longer."""
    text = fold(content) if len(content) <= MAX_STATEMENT else ""
    lead, *rest = _CLAUSE.split(text, maxsplit=1)
    is_new = _words("now", "changed", "ended").search(text) or _instead().fullmatch(text)
    return bool(is_new or (rest and _words("another").search(lead)))


def renews(newer: str, older: str) -> bool:
    """Return whether ``newer``, which ``says_new``, states another value of what ``older`` states.

    Both have the same words but for one place, the value, which stands at the end and behind the
    word that says that it is new. It may stand before a role: "Lisa is my accountant now". What
    changed may stand before it: "I changed cars, it's a Fiat now". Or the newer text says that the
    older one holds no longer.
    """
    text, known = fold(without_periods(newer)), fold(without_periods(older))
    if _is_unclear(known) or _loses_name(newer, older):
        return False
    is_dated = fold(older) != known
    if _names(newer) == _names(older) and _is_renewal(text, known, was_dated=is_dated):
        return True
    return _ends(text, known) or any(
        _is_renewal(each, known, what) for each, what in _readings(text)
    )


def _loses_name(newer: str, older: str) -> bool:
    """Return whether no name stands for the older text's: "my lawyer is now retired" says no name.

    Only who writes capitals tells it.
    """
    gone, come = (
        [token for token in tokenize(one) if not _joins(token) and not _forms(token) & known]
        for one, known in ((older, _all_forms(newer)), (newer, _all_forms(older)))
    )
    is_named = any(token.capitalised or token.script == "number" for token in come)
    return newer[:1].isupper() and any(token.capitalised for token in gone) and not is_named


def _all_forms(text: str) -> set[str]:
    return set().union(*map(_forms, tokenize(text)))


def _readings(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text without the clause that says that something changed, and what that names."""
    lead, *rest = _CLAUSE.split(text, maxsplit=1)
    if rest and _words("now", "changed", "another").search(lead):
        named = _content(_words("now", "changed", "another", "got").sub(" ", lead))
        value = _words("fresh").sub(" ", rest[0])
        yield f"changed {value}", ""
        if len(named) == 1:
            yield f"{named[0].text} changed {value}", named[0].text


@cache
def _instead() -> re.Pattern[str]:
    """Return the form of "delivery is not on Tuesday, it's on Thursday"."""
    denied, but = (fold("|".join(_LISTS[name])) for name in ("denied", "but"))
    return re.compile(rf"(.+?)(?<![\w'])(?:{denied})\s(.+?)(?:,|\s(?:{but}))\s\S.*")


def _ends(text: str, known_text: str) -> bool:
    """Return whether a clause says that what is known holds no longer."""
    known = _content(known_text)
    clauses = list(filter(_words("ended").search, _CLAUSE.split(text)))
    if found := _instead().fullmatch(text):
        clauses.append(" ".join(found.groups()))
    for clause in clauses:
        rest = _words("not", "now").sub(" ", clause)
        given = _content(rest)
        same = [any(_forms(one) & _forms(other) for other in known) for one in given]
        is_whole = len(given) == len(known) >= 1 and all(same) and not _is_unclear(rest)
        is_whole &= _days(given) == _days(known)
        if is_whole and _joining(rest) ^ _joining(known_text) <= _words_of("free") | _CHANGING:
            return True
    return False


def _is_renewal(text: str, known_text: str, thing: str = "", *, was_dated: bool = False) -> bool:
    """Return whether the values differ.

    ``thing``: that of the person which was said to change. ``was_dated``: what is known had a date
    that is no part of the text: "tomorrow".
    """
    if _is_unclear(text):
        return False
    pieces = _words("now", "changed").split(text)
    here, there = _joining(" ".join(pieces)), _joining(known_text)
    # "My appointment" may be "the appointment" later, but not the other way about.
    there -= {word for word in there - here if _words("mine").fullmatch(word)}
    if not thing and not here ^ there <= _words_of("free"):
        return False
    known, given = _content(known_text), _content(" ".join(pieces))
    changes = _changes(known, given)
    if len(changes) != 1:
        return False
    kind, old, old_end, new, new_end = changes[0]
    if kind != "replace":
        is_day = was_dated and old == len(known) and _says_day(given[new:new_end])
        return is_day and _words("changed").search(text) is not None
    behind = given[new_end:]
    if len(behind) == new_end == 1 and len(known) == 2 and _is_owned(behind[0].text, text):
        return _is_value(known[old:old_end], given[new:new_end], behind, text)
    is_last = _are_units(behind)
    values = known[old:old_end], given[new:new_end]
    is_last &= not _is_of_somebody(values[0], known_text)
    is_last &= _are_alike(values, known_text, text)
    if not is_last or new < _first_behind(pieces, given):
        return False
    if thing:
        is_mine = new > 0 and _is_owned(known[0].text, known_text)
        is_mine &= _says_day(values[0]) == _says_day(values[1])
        return is_mine and not _is_several(known[0], *chain(*values))
    return _is_value(*values, given[:new], text)


def _is_of_somebody(value: Sequence[Token], text: str) -> bool:
    """Return whether a value begins with whose it is: "Ana" of "o carro da Ana é um Gol"."""
    is_person = any(_words("persons").fullmatch(token.text) for token in value)
    return len(value) > 1 and (is_person or value[0].text in _OF_NAME.findall(text))


def _are_alike(values: Sequence[Sequence[Token]], *texts: str) -> bool:
    """Return whether both values say where, or none: no doctor but Cohen is "now in Tel Aviv"."""
    # Behind "changed", the words for "to" come before any value.
    is_changed = _words("changed").search(texts[1])
    where = _words("where") if is_changed else _words("where", "where_now")
    return _says_where(values[0], texts[0], where) == _says_where(values[1], texts[1], where)


def _says_where(value: Sequence[Token], folded_text: str, where: re.Pattern[str]) -> bool:
    if _says_day(value) or any(map(_is_number, value)):
        return False
    words = "|".join(re.escape(token.text) for token in value)
    before = rf"{where.pattern}(?:\s\w{{1,3}})?\s(?:{words})(?!\w)"
    is_moved = _words("going").search(folded_text) or _HEBREW_PLACE.match(value[0].text)
    return bool(is_moved or re.search(before, folded_text))


def may_renew(newer: str, older: str) -> bool:
    """Return whether ``newer``, which ``says_new``, may state another value of the same thing.

    Less is certain than where it ``renews``, so that people are asked. But what both are about is
    the same: "Noa's phone is 2 now" has nothing to do with "Dana's phone is 1".
    """
    text, known_text = fold(without_periods(newer)), fold(without_periods(older))
    if _is_unclear(text) or _is_unclear(known_text) or _names(newer) != _names(older):
        return False
    pieces = _words("now", "changed").split(text)
    plain = " ".join(pieces)
    if any(map(_may_be_anothers, _joining(plain) ^ _joining(known_text))):
        return False
    known, given = _content(known_text), _content(plain)
    change = _one_change(known, given)
    if change is None or change[0] == 0 or change[2] < _first_behind(pieces, given):
        return False
    old, old_end, new, new_end = change
    values = known[old:old_end], given[new:new_end]
    behind = [word for word in given[new_end:] if word.script != "number"]
    same = {word.text for word in known} - {given[new - 1].text}
    if any(_words("several").fullmatch(word.text) for word in given if word.text not in same):
        # A brother is not the sister.
        return False
    numbers = [sum(word.script == "number" for word in value) for value in values]
    is_last = _are_units(behind) or (len(behind) == 1 and not any(numbers))
    is_last &= _are_alike(values, known_text, text)
    if not is_last or not (_is_one_piece(known_text, old) and _is_one_piece(plain, new)):
        return False
    return not any(numbers) or all(map(_is_time_or_number, [*values[0], *values[1]]))


def _first_behind(pieces: Sequence[str], given: Sequence[Token]) -> int:
    """Return the place behind the last word that says that it is new; 0 where that is the end."""
    last = len(_content(pieces[-1]))
    return len(given) - last if last else 0


def _one_change(known: Sequence[Token], given: Sequence[Token]) -> tuple[int, int, int, int] | None:
    """Return the places of the words that others stand for, if these are the only difference."""
    changes = _changes(known, given)
    return changes[0][1:] if [each[0] for each in changes] == ["replace"] else None


def _changes(
    known: Sequence[Token], given: Sequence[Token]
) -> list[tuple[str, int, int, int, int]]:
    """Return in what two texts differ; nothing where they are too short or too long for it."""
    if not 2 <= len(known) <= MAX_WORDS or not 2 <= len(given) <= MAX_WORDS:
        return []
    return [each for each in _opcodes(known, given) if each[0] != "equal"]


def _are_units(behind: Sequence[Token]) -> bool:
    return all(_words("units").fullmatch(word.text) for word in behind)


def _may_be_anothers(joining: str) -> bool:
    """Return whether a joining word may tell whose something is, or which one it is."""
    is_own = joining in lexicon.FIRST_PERSON or _words("mine").fullmatch(joining)
    is_small = joining in _words_of("free") or _words("small").fullmatch(joining)
    return not (is_own or is_small)


def _is_one_piece(folded_text: str, start: int) -> bool:
    """Return whether there are no joining words from this word of ``_content`` on.

    A day and a time may have some between them, but no verb.
    """
    tokens = [token for token in tokenize(folded_text) if not token.part]
    places = [place for place, token in enumerate(tokens) if not _joins(token)][start:]
    value = tokens[places[0] : places[-1] + 1]
    within = {token.text for token in value if _joins(token)}
    is_time = all(_is_time_or_number(token) for token in value if not _joins(token))
    return not within or (is_time and not within & lexicon.COPULAS)


def _is_time_or_number(word: Token) -> bool:
    return word.script == "number" or bool(names_day(word.text))


def _is_owned(role: str, text: str) -> bool:
    """Return whether "my" stands beside the role, in front of it or behind it."""
    words = re.findall(r"\w+", text)
    place = words.index(role) if role in words else len(words)
    return any(map(_words("mine").fullmatch, words[max(place - 1, 0) : place + 2]))


def _is_unclear(folded_text: str) -> bool:
    words = set(re.findall(r"\w+|[?+]", folded_text))
    return len(folded_text) > MAX_STATEMENT or bool(words & (lexicon.NOT_PLAIN | lexicon.NEGATIONS))


def _content(folded_text: str) -> list[Token]:
    """Return the words that name something."""
    return [token for token in tokenize(folded_text) if not token.part and not _joins(token)]


def _joining(folded_text: str) -> set[str]:
    """Return the other words. Two statements about one thing differ in few of them."""
    return {token.text for token in tokenize(folded_text) if not token.part and _joins(token)}


def _joins(token: Token) -> bool:
    is_function = token.script != "number" and kind_of(token) is Kind.FUNCTION
    return is_function or _words("small").fullmatch(token.text) is not None


@cache
def _words_of(name: str) -> frozenset[str]:
    return frozenset(fold(" ".join(_LISTS[name])).split())


def _names(text: str) -> set[str]:
    """Return the names that are joining words without their capital: Al, Di, Will."""
    return {token.text for token in tokenize(text) if token.capitalised} & _words_of("names")


def _opcodes(
    known: Sequence[Token], given: Sequence[Token]
) -> Sequence[tuple[str, int, int, int, int]]:
    """Compare two texts word by word; words with a common form are equal."""
    forms = [_forms(token) for token in known]
    numbers = [
        next((place for place, other in enumerate(forms) if other & _forms(token)), -1 - number)
        for number, token in enumerate(given)
    ]
    return SequenceMatcher(None, range(len(known)), numbers, autojunk=False).get_opcodes()


def _forms(token: Token) -> set[str]:
    if _ARABIC.search(token.text):
        # Whose it is, is their ending.
        return {token.text.removeprefix("ال")}
    if _is_several(token) or _words("persons").fullmatch(token.text):
        # "Hija" and "hijo" are two people.
        return {token.text}
    forms = word_forms(token)
    return {token.text, forms.word, *forms.bare}


def _is_value(
    known: Sequence[Token], given: Sequence[Token], subject: Sequence[Token], text: str
) -> bool:
    """Return whether one value of the subject stands in place of another one."""
    if not subject or max(len(known), len(given)) > MAX_VALUE:
        return False
    places = [lexicon.PLACES.intersection(word.text for word in side) for side in (known, given)]
    if _is_several(*known, *given) or places[0] != places[1]:
        return False
    words = [token.text for token in (*known, *given) if not token.text[0].isdigit()]
    # Who closes "at 5 on Fridays" may close "at 6 on Sundays".
    is_bare = len(words) == len(known) + len(given)
    days = [names_day(word.removesuffix("s") if is_bare else word) for word in words]
    if any(days):
        return all(days)
    counts = [sum(map(_is_number, side)) for side in (known, given)]
    is_address = counts == [1, 1] and any(
        _words("address").fullmatch(each.text) for each in subject
    )
    if any(counts) and not is_address:
        return counts == [len(known), len(given)]
    if _is_several(subject[-1]):
        return False
    if _words("changed").search(_words("now").sub(" ", text)):
        return True
    is_own = _words("mine").search(text) or not lexicon.ATTRIBUTES.isdisjoint(
        token.text for token in subject
    )
    is_short = min(map(len, (known, given))) == 1
    return bool(is_own) and is_short and not _words("several").search(text)


def _days(words: Sequence[Token]) -> set[str]:
    singular = {word.text.removesuffix("s") for word in words}
    return {word for word in singular if names_day(word)}


def _says_day(words: Sequence[Token]) -> bool:
    return names_day(" ".join(word.text for word in words))


def _is_several(*tokens: Token) -> bool:
    """Return whether a word names what a person may have several of."""
    return any(_words("several").fullmatch(token.text) for token in tokens)


def _is_number(token: Token) -> bool:
    return token.script == "number" or _words("numerals").fullmatch(token.text) is not None
