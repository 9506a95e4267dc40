"""Decide whether a statement that says it is new renews an older one, in any words.

"Now my hairdresser is Ira" renews "my hairdresser is Oleg": but for one place, both have the same
words. The words that say that something is new are those of ten languages (``renewals.json``).
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

from memories_app.facts import lexicon
from memories_app.facts.lexicon import content_of, is_named, joining_of, pattern_of, short_names
from memories_app.facts.validity import MAX_STATEMENT, names_day, without_periods
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.tokenizer import Token, tokenize

MAX_VALUE = 4
# Who says that something holds no longer says it with other words than before: "I'm", "there is".
_CHANGING = {"i", "i'm", "im", "am", "m", "יש"}
# The words that say that something is new.
_NEW = ("now", "changed", "fresh")
_OF_NAME = re.compile(r"\b(?:of|d[aeo]s?|del|di|von|של) (\w+)")
_HEBREW_PLACE = re.compile("ב[א-ת]{2,}")
_CLAUSE = re.compile(r"(?<!\bdr)(?<!\bmr)(?<!\bmrs)[,;:.!،]\s+|\s[-–—]\s|\n")


def says_new(content: str) -> bool:
    """Return whether a text says that what it states is new, has changed, or holds no longer."""
    text = fold(content) if len(content) <= MAX_STATEMENT else ""
    lead, *rest = _CLAUSE.split(text, maxsplit=1)
    is_new = pattern_of("now", "changed", "ended").search(text) or _instead().fullmatch(text)
    return bool(is_new or (rest and pattern_of("fresh").search(lead)))


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
    living = pattern_of("living")
    if living.search(known) and pattern_of("going").search(text) and not living.search(text):
        # Frames know the names of places; "Dana moved to Pilates" is none.
        return False
    is_dated = fold(older) != known
    if short_names(newer) == short_names(older) and _is_renewal(text, known, was_dated=is_dated):
        return True
    return _ends(text, known) or any(
        _is_renewal(each, known, what) for each, what in _readings(text)
    )


def _loses_name(newer: str, older: str) -> bool:
    """Return whether no name stands for the older text's: "my lawyer is now retired" says no name.

    Only who writes capitals tells it.
    """
    gone, come = (
        [
            token
            for token in tokenize(one)
            if not lexicon.joins(token) and not lexicon.forms_of(token) & known
        ]
        for one, known in ((older, _all_forms(newer)), (newer, _all_forms(older)))
    )
    is_named = any(token.capitalised or token.script == "number" for token in come)
    return newer[:1].isupper() and any(token.capitalised for token in gone) and not is_named


def _all_forms(text: str) -> set[str]:
    return set().union(*map(lexicon.forms_of, tokenize(text)))


def _readings(text: str) -> Iterator[tuple[str, str]]:
    """Yield a text without the clause that says that something changed, and what that names.

    "I have another phone, 052" only adds one; "bought another phone, now it's a Nokia" doesn't.
    """
    lead, *rest = _CLAUSE.split(text, maxsplit=1)
    added = lexicon.words_in(lead) & lexicon.NOT_PLAIN
    is_new = pattern_of("now").search(rest[0]) if added and rest else pattern_of(*_NEW).search(lead)
    if rest and is_new:
        named = content_of(pattern_of(*_NEW, "got").sub(" ", lead))
        named = [word for word in named if word.text not in added]
        value = pattern_of("fresh").sub(" ", rest[0])
        yield f"changed {value}", ""
        if len(named) == 1:
            yield f"{named[0].text} changed {value}", named[0].text


@cache
def _instead() -> re.Pattern[str]:
    """Return the form of "delivery is not on Tuesday, it's on Thursday"."""
    denied, but = pattern_of("denied").pattern, pattern_of("but").pattern
    return re.compile(rf"(.+?){denied}\s(.+?)(?:,|\s{but})\s\S.*")


def _ends(text: str, known_text: str) -> bool:
    """Return whether a clause says that what is known holds no longer."""
    known = content_of(known_text)
    clauses = list(filter(pattern_of("ended").search, _CLAUSE.split(text)))
    if found := _instead().fullmatch(text):
        clauses.append(" ".join(found.groups()))
    for clause in clauses:
        rest = pattern_of("not", "now").sub(" ", clause)
        given = content_of(rest)
        same = [
            any(lexicon.forms_of(one) & lexicon.forms_of(other) for other in known) for one in given
        ]
        is_whole = len(given) == len(known) >= 1 and all(same) and not _is_unclear(rest)
        is_whole &= _days(given) == _days(known)
        if (
            is_whole
            and joining_of(rest) ^ joining_of(known_text) <= lexicon.listed("free") | _CHANGING
        ):
            return True
    return False


def _is_renewal(text: str, known_text: str, thing: str = "", *, was_dated: bool = False) -> bool:
    """Return whether the values differ.

    ``thing``: that of the person which was said to change. ``was_dated``: what is known had a date
    that is no part of the text: "tomorrow".
    """
    if _is_unclear(text):
        return False
    pieces = pattern_of("now", "changed").split(text)
    here, there = joining_of(" ".join(pieces)), joining_of(known_text)
    # "My appointment" may be "the appointment" later, but not the other way about.
    there -= {word for word in there - here if pattern_of("mine").fullmatch(word)}
    if not thing and not here ^ there <= lexicon.listed("free"):
        return False
    known, given = content_of(known_text), content_of(" ".join(pieces))
    changes = lexicon.changes(known, given)
    if len(changes) != 1:
        return False
    kind, old, old_end, new, new_end = changes[0]
    if kind != "replace":
        is_day = was_dated and old == len(known) and _says_day(given[new:new_end])
        return is_day and pattern_of("changed").search(text) is not None
    behind = given[new_end:]
    if len(behind) == new_end == 1 and len(known) == 2 and _is_owned(behind[0].text, text):
        return _is_value(known[old:old_end], given[new:new_end], behind, text)
    is_last = lexicon.are_units(behind)
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
    is_person = any(pattern_of("persons").fullmatch(token.text) for token in value)
    return len(value) > 1 and (is_person or value[0].text in _OF_NAME.findall(text))


def _are_alike(values: Sequence[Sequence[Token]], *texts: str) -> bool:
    """Return whether both values say where, or none: no doctor but Cohen is "now in Tel Aviv"."""
    # Behind "changed", the words for "to" come before any value.
    is_changed = pattern_of("changed").search(texts[1])
    where = pattern_of("where") if is_changed else pattern_of("where", "where_now")
    return _says_where(values[0], texts[0], where) == _says_where(values[1], texts[1], where)


def _says_where(value: Sequence[Token], folded_text: str, where: re.Pattern[str]) -> bool:
    if _says_day(value) or any(map(lexicon.is_number, value)):
        return False
    words = "|".join(re.escape(token.text) for token in value)
    before = rf"{where.pattern}(?:\s\w{{1,3}})?\s(?:{words})(?!\w)"
    is_moved = pattern_of("going").search(folded_text) or _HEBREW_PLACE.match(value[0].text)
    return bool(is_moved or re.search(before, folded_text))


def may_renew(newer: str, older: str) -> bool:
    """Return whether ``newer``, which ``says_new``, may state another value of the same thing.

    Less is certain than where it ``renews``, so that people are asked. But what both are about is
    the same: "Noa's phone is 2 now" has nothing to do with "Dana's phone is 1".
    """
    text, known_text = fold(without_periods(newer)), fold(without_periods(older))
    if _is_unclear(text) or _is_unclear(known_text) or short_names(newer) != short_names(older):
        return False
    pieces = pattern_of("now", "changed").split(text)
    plain = " ".join(pieces)
    if any(map(_may_be_anothers, joining_of(plain) ^ joining_of(known_text))):
        return False
    known, given = content_of(known_text), content_of(plain)
    change = lexicon.one_change(known, given)
    if change is None or change[0] == 0 or change[2] < _first_behind(pieces, given):
        return False
    old, old_end, new, new_end = change
    values = known[old:old_end], given[new:new_end]
    behind = [word for word in given[new_end:] if word.script != "number"]
    same = {word.text for word in known} - {given[new - 1].text}
    if any(pattern_of("several").fullmatch(word.text) for word in given if word.text not in same):
        # A brother is not the sister.
        return False
    numbers = [sum(word.script == "number" for word in value) for value in values]
    is_last = lexicon.are_units(behind) or (len(behind) == 1 and not any(numbers))
    is_last &= _are_alike(values, known_text, text)
    if not is_last or not (_is_one_piece(known_text, old) and _is_one_piece(plain, new)):
        return False
    is_bare = not any(numbers) or all(map(_is_time_or_number, [*values[0], *values[1]]))
    return is_bare or (numbers == [1, 1] and [len(value) for value in values] == [2, 2])


def says_end(content: str) -> bool:
    """Return whether a text has a word for an end or a change."""
    text = fold(content) if len(content) <= MAX_STATEMENT else ""
    ends = (f"no_{state}" for state in sorted(lexicon.listed("states")))
    return pattern_of(*_NEW, "ended", "quit", "gone", *ends).search(text) is not None


def may_end(newer: str, older: str) -> bool:
    """Return whether ``newer`` may tell the end, or another day or number, of what ``older`` tells.

    It says so in any words, and names the same: "I left Leumi" for "my bank is Leumi", "Rex died"
    for "I have a dog called Rex". What both are may be true, so that people are asked.
    """
    text, known_text = fold(without_periods(newer)), fold(without_periods(older))
    if any(not lexicon.NOT_PLAIN.isdisjoint(lexicon.words_in(each)) for each in (text, known_text)):
        return False
    if max(len(text), len(known_text)) > MAX_STATEMENT:
        return False
    if _lies_elsewhere(text, known_text):
        return True
    is_mine = pattern_of("mine").search(known_text) is not None
    whose = [set(pattern_of("whose", "persons").findall(each)) for each in (text, known_text)]
    if whose[0] - whose[1]:
        return False
    known, clauses = content_of(known_text), _CLAUSE.split(text)
    return (
        any(_tells_end(clause, known, known_text) for clause in clauses)
        or (is_mine and any(lexicon.leaves(clause, known) for clause in clauses))
        or (short_names(newer) == short_names(older) and _tells_other_value(text, known_text))
        or any(_ends_state(state, text, known_text) for state in lexicon.listed("states"))
        or (is_mine and lexicon.sees_another(text, known_text))
    )


def _lies_elsewhere(text: str, known_text: str) -> bool:
    """Return whether the same is somewhere else now: a key with Sam that was under the mat."""
    beside = pattern_of("now", "beside")
    known, given = (content_of(beside.sub(" ", each)) for each in (known_text, text))
    change = lexicon.one_change(known, given) if pattern_of("now").search(text) else None
    if change is None or change[0] == 0 or (len(known), len(given)) != (change[1], change[3]):
        return False
    if _days([*known, *given]):
        return False
    where = pattern_of("where", "beside")
    sides = (known[change[0] :], known_text), (given[change[2] :], text)
    return all(_says_where(value, side, where) for value, side in sides)


def _tells_end(clause: str, known: Sequence[Token], known_text: str) -> bool:
    """Return whether a clause says that what is named in the known text has ended.

    Before the word that says so nothing else is named, and behind it the same comes first.
    """
    found = pattern_of("gone").search(clause) or pattern_of("quit").search(clause)
    lead, rest = (clause[: found.start()], clause[found.end() :]) if found else ("", "")
    if found is None or pattern_of("negated").search(lead):
        return False
    verbs = pattern_of("aside", "quit", "gone")
    before, behind = content_of(verbs.sub(" ", lead)), content_of(verbs.sub(" ", rest))
    same = [word for word in (*before, *behind) if is_named(word, known)]
    # "We sold 40 cakes" is no end of selling them.
    is_event = found.group() in known_text or any(each.script == "number" for each in behind[:1])
    if not same or is_event or not all(word in same or lexicon.is_generic(word) for word in before):
        return False
    is_anothers = pattern_of("persons").fullmatch(known[0].text) is not None
    is_anothers |= not lexicon.is_own(known_text) and pattern_of("small").match(known_text) is None
    if lexicon.is_own(lead) and is_anothers and not is_named(known[0], same):
        # "Dana works at Intel" doesn't end where I quit.
        return False
    objects = [
        word for word in behind if not lexicon.is_generic(word) and not _is_time_or_number(word)
    ]
    if objects and objects[0] in same:
        # "The wedding Dana" may be another one.
        after = verbs.sub(" ", rest).partition(objects[0].text)[2].split(" ")[1:2]
        names = {word.text for word in objects if not is_named(word, known)}
        return names.isdisjoint(word.text for word in content_of("".join(after)))
    is_gone = pattern_of("gone").fullmatch(found.group()) is not None
    return not objects or (is_gone and before != [])


def _tells_other_value(text: str, known_text: str) -> bool:
    """Return whether a text gives another day or number of what is named in the known one."""
    if not pattern_of(*_NEW).search(text) or pattern_of("negated").search(text):
        return False
    plain = pattern_of(*_NEW, "aside", "quit", "bystanders").sub(" ", text)
    if any(map(_may_be_anothers, joining_of(plain) - joining_of(known_text))):
        return False
    known, given = content_of(known_text), content_of(plain)
    values = [{word.text for word in side if _is_time_or_number(word)} for side in (given, known)]
    names = [
        word for word in given if not _is_time_or_number(word) and not lexicon.are_units([word])
    ]
    return (
        all(values)
        and values[0] != values[1]
        and names != []
        and all(is_named(word, known) for word in names)
        # "Room 5 is free", "On Mondays we open at 9".
        and not any(_is_time_or_number(side[0]) for side in (known, given))
        and not any(
            side[0].text in lexicon.NUMBERED and any(map(lexicon.is_number, side[1:2]))
            for side in (known, given)
        )
    )


def _ends_state(state: str, text: str, known_text: str) -> bool:
    """Return whether somebody is no longer what the known text says: pregnant, a student."""
    then = pattern_of(f"is_{state}").search(known_text)
    end = pattern_of(f"no_{state}").search(text)
    if then is None or end is None or pattern_of("negated").search(text[: end.start()]):
        return False
    known_subject, subject = (
        content_of(pattern_of("aside").sub(" ", part))
        for part in (known_text[: then.start()], text[: end.start()])
    )
    return all(is_named(word, content_of(text)) for word in known_subject) and all(
        is_named(word, content_of(known_text)) for word in subject
    )


def _first_behind(pieces: Sequence[str], given: Sequence[Token]) -> int:
    """Return the place behind the last word that says that it is new; 0 where that is the end."""
    last = len(content_of(pieces[-1]))
    return len(given) - last if last else 0


def _may_be_anothers(joining: str) -> bool:
    """Return whether a joining word may tell whose something is, or which one it is."""
    is_own = joining in lexicon.FIRST_PERSON or pattern_of("mine").fullmatch(joining)
    is_small = joining in lexicon.listed("free") or pattern_of("small").fullmatch(joining)
    return not (is_own or is_small)


def _is_one_piece(folded_text: str, start: int) -> bool:
    """Return whether there are no joining words from this word of ``_content`` on.

    A day and a time may have some between them, but no verb.
    """
    tokens = [token for token in tokenize(folded_text) if not token.part]
    places = [place for place, token in enumerate(tokens) if not lexicon.joins(token)][start:]
    value = tokens[places[0] : places[-1] + 1]
    within = {token.text for token in value if lexicon.joins(token)}
    is_time = all(_is_time_or_number(token) for token in value if not lexicon.joins(token))
    return not within or (is_time and not within & lexicon.COPULAS)


def _is_time_or_number(word: Token) -> bool:
    return word.script == "number" or bool(names_day(word.text))


def _is_owned(role: str, text: str) -> bool:
    """Return whether "my" stands beside the role, in front of it or behind it."""
    words = re.findall(r"\w+", text)
    place = words.index(role) if role in words else len(words)
    return any(map(pattern_of("mine").fullmatch, words[max(place - 1, 0) : place + 2]))


def _is_unclear(folded_text: str) -> bool:
    words = lexicon.words_in(folded_text)
    return len(folded_text) > MAX_STATEMENT or bool(words & (lexicon.NOT_PLAIN | lexicon.NEGATIONS))


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
    counts = [sum(map(lexicon.is_number, side)) for side in (known, given)]
    is_address = counts == [1, 1] and any(
        pattern_of("address").fullmatch(each.text) for each in subject
    )
    if any(counts) and not is_address:
        return counts == [len(known), len(given)]
    if _is_several(subject[-1]):
        return False
    if pattern_of("changed").search(pattern_of("now").sub(" ", text)):
        return True
    is_own = pattern_of("mine").search(text) or not lexicon.ATTRIBUTES.isdisjoint(
        token.text for token in subject
    )
    is_short = min(map(len, (known, given))) == 1
    return bool(is_own) and is_short and not pattern_of("several").search(text)


def _days(words: Sequence[Token]) -> set[str]:
    singular = {word.text.removesuffix("s") for word in words}
    return {word for word in singular if names_day(word)}


def _says_day(words: Sequence[Token]) -> bool:
    return names_day(" ".join(word.text for word in words))


def _is_several(*tokens: Token) -> bool:
    return any(lexicon.is_several(token.text) for token in tokens)
