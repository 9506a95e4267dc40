"""Find the clause of a message that states a fact. Pure: no Django here."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from memoryproject.foundation.text import characters, terms, tokenizer
from sessions_app.extraction import statement_words as lexicon

INFORMATIVE = (tokenizer.Kind.COMMON, tokenizer.Kind.PLAIN, tokenizer.Kind.NAME)
_WORD = re.compile(r"[^\W_]+(?:['’׳״-][^\W_]+)*")
# A point or a colon inside a number or a word ends no sentence.
_SENTENCE_END = re.compile(r"[?؟!;؛…]+|\n+|\.+(?!\w)")
# What stands before a clause, at the end of so many characters after the last word.
_STOP = re.compile(r"[,،:—–](?!\d)| - ")
_MAX_STOP = 6
# So many words may stand before the person whom a clause is about, and that person.
_MAX_LEAD = 4


@dataclass(frozen=True)
class Clause:
    """The part of a message that states a fact, and the sentences that it stands in.

    ``asks`` is True if a question mark ends it.
    """

    text: str
    sentences: str
    asks: bool

    @cached_property
    def words(self) -> list[str]:
        return words_of(self.text)


def words_of(text: str) -> list[str]:
    """Return the words in folded form, in order."""
    return [characters.fold(word).replace("’", "'") for word in _WORD.findall(text)]


def without_marks(text: str) -> str:
    """Return the text without invisible marks, in one form, digits as 0 to 9."""
    seen = (
        str(unicodedata.decimal(each)) if each.isdecimal() else each
        for each in unicodedata.normalize("NFC", text)
        if unicodedata.category(each) != "Cf"
    )
    return "".join(seen)


@dataclass(frozen=True)
class Quote:
    """A quote in a text: the text, and where the quote begins and ends in it."""

    text: str
    start: int
    end: int


def quote_place(quote: str, text: str) -> Quote | None:
    """Return where ``text`` holds the quote word for word; any white space counts as one space.

    Both are without marks.
    """
    if not any(character.isalnum() for character in quote):
        return None
    # Each character of the text but repeated white space, with its place.
    places = [
        place
        for place, character in enumerate(text)
        if not character.isspace() or not text[max(0, place - 1) : place].isspace()
    ]
    folded = "".join(" " if text[place].isspace() else text[place] for place in places)
    wanted = " ".join(quote.split())
    found = characters.whole_places(folded, wanted)
    if not found:
        return None
    return Quote(text, places[found[0]], places[found[0] + len(wanted) - 1] + 1)


def clause_of(quote: Quote, fact: str) -> Clause:
    """Return the clauses that the quote touches.

    If it touches several, those are left out that share no informative word with the fact.
    """
    touched: list[tuple[str, bool]] = []
    sentences = []
    for start, end, asks in _sentences(quote.text):
        if end <= quote.start or start >= quote.end:
            continue
        sentences.append(quote.text[start:end])
        pieces = _clauses(quote.text, start, end)
        for place, (first, last) in enumerate(pieces):
            if last > quote.start and first < quote.end:
                is_last = place == len(pieces) - 1
                touched.append((quote.text[first:last], asks and is_last))
    wanted = forms_of([fact])
    sharing = [each for each in touched if forms_of([each[0]]) & wanted]
    chosen = sharing or touched
    return Clause(
        text=", ".join(text.strip(" ,،") for text, _asks in chosen),
        sentences="\n".join(sentences),
        asks=any(asks for _text, asks in chosen),
    )


def forms_of(texts: Sequence[str]) -> set[str]:
    """Return the compared forms of all informative words but numbers."""
    return {
        form
        for text in texts
        for token in tokenizer.tokenize(text)
        if token.script != "number" and tokenizer.kind_of(token) in INFORMATIVE
        for form in forms_of_token(token)
    }


def forms_of_token(token: tokenizer.Token) -> set[str]:
    forms = terms.word_forms(token)
    return {forms.word, *forms.bare}


def _sentences(text: str) -> Iterator[tuple[int, int, bool]]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield start, end.start(), "?" in end.group() or "؟" in end.group()
        start = end.end()
    yield start, len(text), False


def _clauses(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a sentence where words with a subject of their own begin.

    "I don't eat meat, fish and eggs" is one clause, "I don't eat meat, I eat fish" are two.
    """
    cuts = [start]
    previous, place = "", start
    for word in _WORD.finditer(text, start, end):
        folded = characters.fold(word.group()).replace("’", "'")
        stopped = _STOP.search(text[place : word.start()][-_MAX_STOP:]) is not None
        joined = previous in _AND or folded[:1] in ("ו", "و")
        own = folded in lexicon.words("starters") or is_negation(folded)
        asks = stopped and folded in lexicon.words("asking")
        if previous and (folded in lexicon.words("but") or asks or ((stopped or joined) and own)):
            cuts.append(word.start())
        previous, place = folded, word.end()
    pieces = list(zip(cuts, [*cuts[1:], end], strict=True))
    # "No, I'm vegetarian": the first word answers and negates nothing.
    return [each for each in pieces if not _is_answer(text[each[0] : each[1]])] or pieces


_AND = frozenset(["and", "so", "y", "e", "и", "und", "et"])


def is_negation(word: str) -> bool:
    return word.endswith("n't") or word in lexicon.words("negations")


def _is_answer(piece: str) -> bool:
    words = words_of(piece)
    return bool(words) and all(word in lexicon.words("yes_or_no") for word in words)


def is_past(words: list[str]) -> bool:
    """Return whether the words tell what was so: "I used to", "vivía", "я жила"."""
    text = f" {' '.join(words)} "
    if "since" in words and not {"have", "has", "i've", "we've"}.isdisjoint(words):
        # "We've lived here since 2019" holds.
        return False
    return any(word in lexicon.words("past") for word in words) or any(
        f" {each} " in text for each in lexicon.phrases("past_phrases")
    )


def is_anothers(noted: list[str], clause: Clause) -> bool:
    """Return whether the clause is about another person, whom the fact doesn't name.

    The fact of "my brother Tom plays the drums" may begin with Tom.
    """
    words = clause.words
    about = next((word for word in noted if len(word) > 2), "")
    if any(word in lexicon.words("others") for word in noted) or about in words:
        return False
    for place, word in enumerate(words[:_MAX_LEAD]):
        if _names_another(word) or (place == 0 and _names_another(word.lstrip("לل"))):
            return not any(map(_is_own_subject, words[place + 1 :]))
        if _is_own_subject(word) or word in lexicon.words("with"):
            return False
    return False


def _names_another(word: str) -> bool:
    return word in lexicon.words("others") or word in lexicon.words("strangers")


def _is_own_subject(word: str) -> bool:
    return word in lexicon.words("first") and word not in lexicon.words("possessive")
