"""Recognise names in Hebrew and Arabic, which have no capitals.

A word is a name if the gazetteer knows it as hardly anything else, or if the words around it say
so: a title, a kind of place ("רחוב"), "my name is", a family name. Prefix letters are left out.
"""

import re
from collections.abc import Iterator

from cards_app.rules.gazetteer import LISTS, gazetteer, key_of, keys
from cards_app.rules.sentence_words import (
    MIN_NAME_LENGTH,
    Mention,
    SentenceWords,
    Word,
    is_common,
    without_marks,
)
from cards_app.rules.words import letter_count

# What the words before a word say of it.
SURE, LIKELY = "sure", "likely"
_NO_NAMES = ("uncased_says", "called", "relatives")
_CUES = ("titles", "kinds", "definite_kinds", "hidden_kinds")

_ACRONYM = re.compile('[א-ת]+["״”][א-ת]')
_BEFORE_ACRONYMS = "ובלה"
# A year of the Hebrew calendar.
_YEAR = re.compile("ה?תש[א-ת]{2}")
# Prefixes before people of three letters: others make other words there (משרה, ברות).
_BEFORE_SHORT = ("", "ו", "ל", "ול", "و")
_AT = ("ב", "ל", "מ")
# Before places and firms only: with a person it is rather another word ("בחיים", "بيزيد").
_IN = ("ב", "ب")
# Before firms and products: "הטויוטה".
_ARTICLES = ("ה", "ال")
# "זה אלון מהדירה"
_FROM = ("מה", "من")
# What an unknown person's name doesn't have: an article, or the form of a verb ("الدكتور يكتب").
_NO_PERSON = re.compile(r"ה|[يت]\w{2}|س[أيتن]\w|ه[يت]\w|ب[يتنس]\w|م\w+ش$|ת\w+י$")


def uncased_name(words: SentenceWords, place: int) -> tuple[int, Mention | None]:
    """Return how many words to go on, and the name that they are, if any."""
    word = words[place]
    if _ACRONYM.fullmatch(word.text):
        return 1, _acronym(word.text)
    cue, kind = _cue(words, place)
    readings = list(_readings(word))
    toward = place > 0 and words[place - 1].key in keys("toward_people")
    for length in range(words.together(place), 0, -1):
        more = [each.key for each in words[place + 1 : place + length]]
        for prefix, bare in readings:
            key = " ".join([key_of(bare), *more])
            # "תגיד לשי", but "זה לשיר"
            evidence = cue if toward or prefix in ("", "ו", "و") else ""
            known = _fits(words, prefix, key) and _known(words, key, place + length, evidence)
            if known or (prefix in _IN and key in words.names.brands):
                end, kind = place + length, None if prefix else kind
                if kind is not None:
                    end = max(end, _end_of_place(words, place, kind))
                elif key not in words.names.places:
                    end = words.with_family(end)
                return end - place, _shown(words, place, end, bare, kind)
    goes_on = not words.ends(place) and not is_common(words[place + 1].key)
    for bare in (bare for _, bare in readings if key_of(bare) in keys("town_starts") and goes_on):
        return 2, _shown(words, place, place + 2, bare, None)
    long_enough = letter_count(word.text) >= MIN_NAME_LENGTH
    in_two_words = kind is not None and _in_two_words(words, place)
    common = is_common(word.key) or any(word.key in keys(name) for name in _NO_NAMES)
    # "מלון ללילה", but רחוב לוינסקי
    purpose = kind is not None and word.text[0] == "ל" and key_of(kind) not in keys("streets")
    common = common or purpose or (kind is None and _NO_PERSON.match(word.text) is not None)
    if cue == SURE and (in_two_words or (long_enough and not common)):
        end = words.with_family(place + 1) if kind is None else _end_of_place(words, place, kind)
        return end - place, _shown(words, place, end, word.text, kind)
    if long_enough and _before_family(words, place):
        return 2, _shown(words, place, place + 2, word.text, None)
    return 1, None


def _readings(word: Word) -> Iterator[tuple[str, str]]:
    for prefix, bare in word.readings():
        yield prefix, bare
        if prefix and bare.startswith("וו"):
            yield prefix, bare[1:]  # "לוורשה"
        if key_of(bare) in keys("no_prefix"):
            return
    for article in _ARTICLES:
        bare = word.text.removeprefix(article)
        if bare != word.text and key_of(bare) in gazetteer().brands:
            yield article, bare


def _fits(words: SentenceWords, prefix: str, key: str) -> bool:
    """Return whether the name may have this prefix."""
    town = key in words.names.places
    short = prefix in _BEFORE_SHORT or (town and len(prefix) < 2)
    return (short or letter_count(key) > MIN_NAME_LENGTH) and (town or not prefix.endswith(_IN))


def _known(words: SentenceWords, key: str, end: int, cue: str) -> bool:
    """Return whether the key is a name: an ambiguous one needs a cue or a family name behind it."""
    names = words.names
    known = names.person(key) is not None or key in names.places
    if " " in key:
        return known and key not in names.also_words
    if not known or (letter_count(key) < MIN_NAME_LENGTH and not cue):
        return False
    if names.sure(key) or (cue and not is_common(key) and key not in keys("particles")):
        return True
    given = key in names.given and key not in keys("before_people")
    return given and end < len(words) and words.joined(end) and _only_family(words, end)


def _before_family(words: SentenceWords, place: int) -> bool:
    """Return whether an unknown word stands before a family name: "שירן כהן"."""
    word, bare_keys = words[place], {key_of(bare) for _, bare in words[place].readings()}
    cue = word.text.startswith(_ARTICLES) or any(bare_keys & keys(name) for name in _CUES)
    if cue or words.ends(place) or is_common(word.key) or words[place + 1].text[:2] == "ال":
        return False
    return _only_family(words, place + 1) and words[place + 1].key not in words.names.given


def _only_family(words: SentenceWords, place: int) -> bool:
    key = words[place].key
    known = key in words.names.family or key.endswith(tuple(keys("family_endings")))
    return known and key not in words.names.also_words


def _shown(words: SentenceWords, place: int, end: int, first: str, kind: str | None) -> Mention:
    text = (f"{kind} " if kind else "") + first + words.text[words[place].end : words[end - 1].end]
    return Mention(text, key_of(text))


def _end_of_place(words: SentenceWords, place: int, kind: str) -> int:
    """Return the place after a name: a street's goes on to a number or comma that soon follows.

    Of other places it is one word, or two like "בן שמן".
    """
    if _in_two_words(words, place):
        return place + 2
    most = min(3, words.together(place)) if key_of(kind) in keys("streets") else 1
    for end in range(place + 1, place + 1 + most):
        key = words[end - 1].key
        if is_common(key) or key in keys("kinds"):
            return max(place + 1, end - 1)
        if end > place + 1 and _is_town_after_prefix(words, words[end - 1]):
            return end - 1
        if words.ends(end - 1):
            return end
    return place + 1


def _is_town_after_prefix(words: SentenceWords, word: Word) -> bool:
    """Return whether the word says in which town the place is: "רחוב הרימון בגבעתיים"."""
    return any(prefix in _AT and bare in words.names.places for prefix, bare in word.readings())


def _in_two_words(words: SentenceWords, place: int) -> bool:
    """Return whether a place's name goes on: "בן שמן", "נווה צדק"."""
    first = words[place]
    goes_on = first.key in keys("two_word_places") or first.key in keys("particles")
    short = (letter_count(first.text) < MIN_NAME_LENGTH and not is_common(first.key)) or goes_on
    return short and not words.ends(place)


def _cue(words: SentenceWords, place: int) -> tuple[str, str | None]:
    """Return what the words before say of the word, and the kind of place that they name.

    SURE: a name follows. LIKELY: if the word may be a name, it is. The kind is None for people, and
    empty where it isn't part of the name ("חברת").
    """
    after = "" if words.ends(place) else words[place + 1].key
    # "גל אמרה", "גל ודנה"
    word, names = words[place], words.names
    with_name = word.key in names.given and after[:1] in ("ו", "و") and names.sure(after[1:])
    says = with_name or after in keys("uncased_says")
    if not words.joined(place):
        called = place == 0 and words.text.startswith((word.text + "!", word.text + ","))
        return LIKELY if says or called else "", None
    before = words[place - 1]
    first = words[place - 2] if place > 1 else None
    if before.key in keys("called") or _pair(first, before.text, "called_in_two_words"):
        return SURE, None
    for prefix, bare in _readings(before):
        key = key_of(bare)
        if key in keys("kinds") or (prefix[-1:] in _AT and key in keys("kinds_with_prefix")):
            return SURE, bare
        if key in keys("definite_kinds") and words[place].text.startswith("ال"):
            return SURE, bare
        if pair := _pair(first, bare, "kinds_in_two_words"):
            return SURE, pair
        if key in keys("hidden_kinds"):
            return SURE, ""
        if key in keys("titles"):
            return SURE, None
    likely = before.key in keys("before_people") and (not after or after.startswith(_FROM))
    likely = likely or before.key in keys("relatives") | keys("toward_people")
    likely = likely or (word.text[0] in "וو" and _holds_name(words, before))
    own = before.key in keys("possessives") and first and first.key in keys("relatives")
    return LIKELY if likely or own or says else "", None


def _holds_name(words: SentenceWords, word: Word) -> bool:
    return any(words.names.sure(key_of(bare)) for _, bare in word.readings())


def _pair(first: Word | None, second: str, name: str) -> str | None:
    pairs = (f"{bare} {second}" for _, bare in (first.readings() if first else ()))
    return next((pair for pair in pairs if pair in LISTS[name]), None)


def _acronym(word: str) -> Mention | None:
    """Return the acronym without prefix letters if three letters are left: "ובארה״ב"."""
    while word[0] in _BEFORE_ACRONYMS and letter_count(word[1:]) >= MIN_NAME_LENGTH:
        word = word[1:]
    bare = without_marks(word)
    rests = map(key_of, [bare, *(bare.removeprefix(each) for each in "והבלמשכ")])
    no_name = any(rest in keys("abbreviations") for rest in rests) or _YEAR.fullmatch(bare)
    return None if len(bare) < MIN_NAME_LENGTH or no_name else Mention(word, key_of(word))
