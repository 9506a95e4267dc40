"""Find the names in a sentence: people, firms, products and places.

Capitals show names, except at the start of a sentence. There, in lower case, and in scripts without
capitals, a name needs other evidence: the gazetteer, or the words around it.
"""

import re
from collections.abc import Iterator

from cards_app.rules.gazetteer import LISTS, key_of, keys
from cards_app.rules.sentence_words import (
    COMMON_WORDS,
    FUNCTION_WORDS,
    MIN_NAME_LENGTH,
    Mention,
    SentenceWords,
    is_common,
    is_uncased,
)
from cards_app.rules.uncased_names import uncased_name
from cards_app.rules.words import is_question, letter_count
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.word_lists import ENGLISH

# Without the links between them ("Rio de Janeiro").
MAX_NAME_WORDS = 4
# A longer word in capitals is rather loud than an acronym.
MAX_ACRONYM = 4

# Before a capital within a sentence. After anything else, such as a quotation mark or an emoji, the
# capital may be a sentence's.
_WITHIN = re.compile(r"[»”]?[\s\d,'’/&+-]*[\s\d,'’/&+]")
_BRAND = re.compile(r"[a-z][A-Z][a-z]+")
# At most three words before a comma or the like, or before a word that goes on.
_PART = r"[^\W\d_][\w'\"״׳-]{0,20}"
_PARTS = f"{_PART}(?: {_PART}){{0,2}}"
_CLAUSE = rf"({_PARTS})(?=\s*(?:[^\w\s'\"״׳-]|$)| (?:{'|'.join(LISTS['going_on'])}))"
_ANSWER = re.compile(rf"\s*{_CLAUSE}")
_WELCOMES = re.compile(f"(?:{'|'.join(LISTS['welcomes'])}){_CLAUSE}")
# With the vowels of Arabic.
_LETTERS = r"[^\W\d_][\w\u064b-\u0652-]"
_IN_QUOTES = rf"({_LETTERS}{{0,20}}(?: {_LETTERS}{{0,20}}){{1,3}}|{_LETTERS}{{2,20}})"
_QUOTED = re.compile(
    rf"(?<!\w)[ושהבלמכوفبل]{{0,3}}(?:«{_IN_QUOTES}»|[\"״“„]{_IN_QUOTES}[\"״“”]|'{_IN_QUOTES}')(?!\w)"
)
_LABELLED = re.compile(rf"\b(?:{'|'.join(LISTS['name_labels'])}): *{_CLAUSE}", re.IGNORECASE)
_INTRODUCED = re.compile(rf"\b(?:{'|'.join(LISTS['introduces'])}) {_CLAUSE}", re.IGNORECASE)
_ASKS_NAME = re.compile("|".join(LISTS["asks_name"]), re.IGNORECASE)
# Gate B22, error E17.
_PLACE_CODE = re.compile(r"[A-Z]\d{2,3}")
_WORD = re.compile(r"[^\W\d_]+")
_CYRILLIC = re.compile("[А-яЁё]")
# Endings of a Russian name in other cases than the first, and what the first may have instead.
_ENDINGS = {ending: first for ending, *first in map(str.split, LISTS["russian_endings"])}
# Patronymics and family names in other cases, and what the first case has instead of the ending.
_CASES = [(re.compile(of), to) for of, to in map(str.split, LISTS["russian_cases"])]
_RUSSIAN_VERB = re.compile("[а-яё](?:[аияе]те|[аеиы]л[аи]?|[аеиы]ть)$")
MIN_STEM = 4
# "улицу Ленина" is "улица Ленина".
_KINDS = {key_of(word): word for word in reversed(LISTS["russian_kinds"])}
_NOT_NAMES = frozenset(" ".join(LISTS["not_names"]).split())
_AMBIGUOUS = frozenset(" ".join(LISTS["also_words"]).split())


def asks_for_name(sentence: str) -> bool:
    return is_question(sentence) and _ASKS_NAME.search(sentence) is not None


def find_mentions(words: SentenceWords, *, answers: bool) -> Iterator[Mention]:
    """Yield the names of one sentence. ``answers``: the message before asked for a name."""
    marked = dict(_marked(words, answers=answers)) if words else {}
    cased = _Cased(words)
    place = 0
    while place < len(words):
        uncased = words[place].uncased
        length, mention = uncased_name(words, place) if uncased else cased.name(place)
        if place in marked:
            mention = marked[place]
            length = len(SentenceWords(mention.text))
        if mention is not None:
            yield mention
        place += max(1, length)


def _marked(words: SentenceWords, *, answers: bool) -> Iterator[tuple[int, Mention]]:
    """Yield names that the sentence itself marks, each with the place of its first word."""
    for match in _QUOTED.finditer(words.text):
        text = match[match.lastindex or 0]
        place = words.place(match.start(match.lastindex or 0))
        before = words[place - 1].key if place else ""
        if _is_title(text, before, angular=match[1] is not None):
            yield place, Mention(text, key_of(text))
    given = [*_LABELLED.finditer(words.text)]
    if answers and (answer := _ANSWER.match(words.text)):
        given.append(answer)
    for match in [*_WELCOMES.finditer(words.text), *given, *_INTRODUCED.finditer(words.text)]:
        keys_of_parts = [key_of(part) for part in match[1].split()]
        # An answer of names only may be written small: "gallagher".
        unknown = not any(map(is_common, keys_of_parts))
        whole = match.end() >= len(words.text.rstrip(" .!")) and unknown
        capital = match[1][0].isupper()
        name = is_uncased(match[1]) or (match in given and (capital or whole))
        name = name or (match.re is _INTRODUCED and unknown)
        # After a known person something else follows; and "שלום מיכאלה" isn't "שלום מ".
        first = words[words.place(match.start(1))]
        more = len(keys_of_parts) > 1 or first.start < match.start(1)
        known = more and words.names.sure(first.key) is not None
        if name and not known and not any(is_common(key, FUNCTION_WORDS) for key in keys_of_parts):
            text = match[1] if capital else _with_capitals(match[1])
            yield words.place(match.start(1)), Mention(text, key_of(text))


def _is_title(text: str, before: str, *, angular: bool) -> bool:
    """Return whether what is between quotation marks is a name, rather than what somebody says."""
    capital = text[0].isupper() and (angular or _CYRILLIC.match(text) is not None)
    first, *more = text.split(" ")
    common = fold(first) in FUNCTION_WORDS or (not more and is_common(key_of(text)))
    speaks = not keys("speaks").isdisjoint((before, before.lstrip("וو")))
    return (capital or is_uncased(text)) and not common and not speaks


class _Cased:
    """The names of a sentence in scripts with capitals."""

    def __init__(self, words: SentenceWords) -> None:
        self.words = words
        self.names = words.names
        self.loud = _without_small_letters(words) or _in_title_case(words)
        self.foreign = any(word.uncased for word in words)
        self.only_people = all(self.names.person(word.key) for word in words)
        # German writes all nouns with a capital.
        self.german = sum(word.key in keys("german") for word in words) > 1
        self.list_end = 0

    def name(self, place: int) -> tuple[int, Mention | None]:
        """Return how many words to go on, and the name that they are, if any."""
        word = self.words[place]
        if _BRAND.fullmatch(word.text):
            return 1, Mention(word.text, word.key)
        known = self._known_place(place)
        if not known and not self._may_start(place):
            return self._in_lower_case(place)
        end = max(known, self._run(place))
        starts = place == 0 or not (self.words.joined(place) or _WITHIN.fullmatch(word.before))
        if starts and end > place + 1 and not known and self._only_starts(place):
            return 1, None
        if place and self.words[place - 1].key in keys("small_kinds") and self._titled(place):
            kind = self.words[place - 1]
            text = f"{_KINDS.get(kind.key, kind.text)} {self.words.between(place, end)}"
            return end - place, Mention(text, key_of(text))
        text = self.words.between(place, end)
        mention = Mention(self._nominative(text, place), key_of(text))
        return end - place, mention if end > place + 1 else self._single(place, mention, starts)

    def _single(self, place: int, mention: Mention, starts: bool) -> Mention | None:
        word = self.words[place]
        no_name = word.function or word.key in keys("languages")
        if no_name or letter_count(word.text) < MIN_NAME_LENGTH or _PLACE_CODE.fullmatch(word.text):
            return None
        if self._sure(place) or (place and self._titled(place)):
            return mention
        common = word.key in COMMON_WORDS or word.key in keys("everyday")
        emphasis = word.text.isupper() and letter_count(word.text) > MAX_ACRONYM
        mixed = any(each.isupper() for each in word.text[1:])
        says = self._after(place) in keys("says")
        apart = not (starts or self.german)
        sure = not (common or emphasis) and (apart or mixed or self.foreign or says)
        return Mention(mention.text, mention.key, sure=sure)

    def _sure(self, place: int) -> bool:
        word, names = self.words[place], self.names
        # Short stems of Russian words are too alike: "Или" and "Илья", "Лев" and "Лёва".
        alike = len(word.key) < MIN_STEM or word.key in names.also_words
        if not (alike and _CYRILLIC.match(word.text)):
            return names.sure(word.key) is not None
        if word.key in names.given and self.words.text.startswith(word.text + ","):
            # Somebody is called: "Вера, ...", "Сонь, ..."
            forms = {word.text, *(word.text.removesuffix("ь") + ending for ending in "ая")}
            return not forms.isdisjoint(names.spellings)
        return word.text in names.spellings and word.text not in _AMBIGUOUS

    def _after(self, place: int) -> str:
        return "" if self.words.ends(place) else self.words[place + 1].key

    def _titled(self, place: int) -> bool:
        """Return whether a title or a kind of street stands before the word."""
        before = self.words[place - 1].key
        joined = self.words.joined(place) or self.words[place].before == ". "
        return joined and (before in keys("titles") or before in keys("small_kinds"))

    def _may_start(self, place: int) -> bool:
        word = self.words[place]
        if not word.capital or self.loud or word.uncased or letter_count(word.text) < 2:
            return False
        # "Инна" has the same stem as "ИНН".
        acronym = word.text.isupper() or not _CYRILLIC.match(word.text)
        if (acronym and word.key in keys("acronyms")) or word.key in keys("titles"):
            return False
        if keys("not_names").isdisjoint((word.key, word.key.removesuffix("s"))):
            return True
        # "Julio Pérez" in spite of the month, and "Marco" in spite of "março".
        family = self._after(place) in self.names.family or word.text.lower() not in _NOT_NAMES
        return family and word.text in self.names.spellings

    def _known_place(self, place: int) -> int:
        """Return the place after a town of several words that starts here, else 0."""
        capital = self.words[place].capital and not self.loud
        ends = range(place + self.words.together(place), place + 1, -1) if capital else ()
        return next((end for end in ends if self.words.key(place, end) in self.names.places), 0)

    def _only_starts(self, place: int) -> bool:
        """Return whether the word has its capital from the sentence, unlike those after it."""
        key, following = self.words[place].key, self.words[place + 1].key
        if self.words[place].function or key in keys("languages"):
            return True
        if self._sure(place):
            return False
        verb = key in keys("before_people") or _RUSSIAN_VERB.search(self.words[place].text)
        return bool(verb) or following in self.names.given or following in keys("articles")

    def _run(self, place: int) -> int:
        """Return the place after the name that starts here: capitals, with links between them.

        Many words together, or one word twice, are a list.
        """
        end = place + 1
        while self.list_end <= place and end < len(self.words):
            following = end
            while following < len(self.words) - 1 and self.words[following].key in keys("links"):
                following += 1
            joined = all(self.words.joined(each) for each in range(end, following + 1))
            if not joined or following - end > 2 or not self._may_start(following):
                break
            code = _PLACE_CODE.fullmatch(self.words[following].text)
            apart = following > end and self._of_a_person(place, following)
            if apart or (code and self.words[place].key in keys("everyday")):
                break
            end = following + 1
        found = [word.key for word in self.words[place:end] if word.key not in keys("links")]
        if len(found) > MAX_NAME_WORDS or len(set(found)) < len(found):
            self.list_end = max(self.list_end, end)
        return place + 1 if place < self.list_end else end

    def _of_a_person(self, place: int, following: int) -> bool:
        """Return whether a link stands between two names: "Marta de Haifa", not "da Silva"."""
        given = self.words[place].key in self.names.given
        return given and self.words[following].key not in self.names.family

    def _nominative(self, text: str, place: int = 0) -> str:
        """Return a Russian name in the first case, as far as known; other names as they are."""
        if not _CYRILLIC.match(text) or key_of(text) in self.names.places:
            return self._spelled(text)
        before = place and self.words[place - 1].key in keys("before_streets")
        if before and text.endswith(tuple(LISTS["russian_streets"])):
            return text[:-2] + "ая"
        given, *family = text.split(" ")
        shown = [self._spelled(given)]
        for part in family:
            # Миши Грачёва, but Ольгу Петрову
            female = "а" if part.endswith("у") and shown[0].endswith(("а", "я")) else ""
            moved = shown[0] != given and part.endswith(tuple(LISTS["russian_families"]))
            shown.append(part[:-1] + female if moved else self._spelled(part))
        return " ".join(shown)

    def _spelled(self, text: str) -> str:
        key, names = key_of(text), self.names
        ending = next((ending for ending in _ENDINGS if text.endswith(ending)), None)
        if text in names.spellings or ending is None:
            return text
        forms = (text.removesuffix(ending) + to.strip("-") for to in _ENDINGS[ending])
        known = next((form for form in forms if form in names.spellings), names.places.get(key))
        if known and ending == "ой" and known.endswith("й"):
            return text[:-2] + "ая"
        if known:
            # Of family names, the feminine nominative looks like this case: Громова.
            return text if ending in "ая" and key in names.family else known
        cases = ((of, to) for of, to in _CASES if of.search(text))
        return next((of.sub(to.strip("-"), text) for of, to in cases), text)

    def _in_lower_case(self, place: int) -> tuple[int, Mention | None]:
        """Return a name that the gazetteer and the words around it make certain."""
        words, names = self.words, self.names
        before = words[place - 1].key if place else ""
        for length in range(words.together(place), 0, -1):
            end = place + length
            key = words.key(place, end)
            given, town = key in names.given, names.places.get(key)
            cued = key not in names.also_words or before in keys("before_brands")
            if key in names.brands and cued and not (len(key) < MIN_STEM and _CYRILLIC.match(key)):
                return length, Mention(names.places[key], key)
            spelled = words.between(place, end)
            titled = before in keys("titles") and names.person(key) and not is_common(key)
            common = key in names.also_words or spelled.lower() in _NOT_NAMES
            if titled or (given and before in keys("relatives") and not common):
                return self._person_in_lower_case(place, end)
            if common or letter_count(spelled) <= MIN_NAME_LENGTH:
                continue
            after = self._after(end - 1)
            cue = before in keys("before_people") or after in keys("after_people") | keys("says")
            # Russian words are too alike in other cases than the first: "дарю" and "Даря".
            first_case = not _CYRILLIC.match(key) or spelled.capitalize() in names.spellings
            cue = cue or self.only_people or key not in keys("words_in_lower_case")
            if given and first_case and cue:
                return self._person_in_lower_case(place, end)
            if town and letter_count(key) > MIN_NAME_LENGTH and before in keys("before_places"):
                return length, Mention(town, key)
        return 1, None

    def _person_in_lower_case(self, place: int, end: int) -> tuple[int, Mention]:
        end = self.words.with_family(end)
        text = _with_capitals(self.words.between(place, end))
        return end - place, Mention(self._nominative(text), key_of(text))


def _with_capitals(text: str) -> str:
    return _WORD.sub(lambda word: word[0].capitalize(), text)


def _without_small_letters(words: SentenceWords) -> bool:
    small = any(each.islower() for each in words.text)
    return len(words) > 1 and not small and not any(word.uncased for word in words)


def _in_title_case(words: SentenceWords) -> bool:
    """Return whether even words of grammar have capitals: "Can You Send Me The Invoice"."""
    grammar = [word for word in words[1:] if word.key in ENGLISH.function]
    return sum(word.capital and len(word.text) > 1 for word in grammar) > 1
