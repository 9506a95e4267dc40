"""Compare what a chat model wrote of messages with the messages themselves."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from cards_app.rules import session_data, vocabulary
from cards_app.rules.extract import Entry, Said, facts_of, is_unit, written_entry
from cards_app.rules.words import split_sentences, split_words, word_set
from memoryproject.foundation.integrations.llm.thoughts import without_thoughts
from memoryproject.foundation.tables import read_table
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.tokenizer import Kind, kind_of, tokenize
from sessions_app.extraction import facade as extraction

_TABLE = read_table(__file__, "proof.yaml")
_REFUSAL = re.compile(rf"\W*(?:{'|'.join(_TABLE['refusals'])})", re.IGNORECASE)
# The fence around what was said stands in the prompt alone.
_FENCE = re.compile(r"</?said-")
# Who speaks is named in the prompt, in any language; headings and markup are no statements.
_LABEL = re.compile(r"\A(?:\*\*|__)?[^\W\d_]+(?:\*\*|__)?:(?:\*\*|__)?\s+")
_MARKUP = re.compile(r"\*\*|__|`|\A#+\s+|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)")
_ITEM = re.compile(r"\A(?:[\s–•*·-]|\d{1,2}[.)]\s)+")
_ROLES = word_set(_TABLE["roles"])
_SHORT_DATE = re.compile(r"(?<![\d./-])(\d{1,2})[./](\d{1,2})(?![\d./-]?\d)")
_LONG_DATE = re.compile(
    r"(?<![\d./-])(?:\d{4}-(\d{1,2})-(\d{1,2})|(\d{1,2})([./-])(\d{1,2})\4\d{2,4})"
)
_MONTHS: tuple[str, ...] = ("january", "february", "march", "april", "may", "june", "july")
_MONTHS += ("august", "september", "october", "november", "december")
# Between a day and its month: "1st of March", "1 de março".
_NEAR = 2
# An ending that a language may add to a name.
_ENDING = 2
_MIN_NAME = 3
# A sentence sums up no more messages than these, and a text has no more sentences.
MAX_SOURCES = 8
MAX_SENTENCES = 100
# A shorter sentence of the prompt may be said by anybody.
MIN_ECHO = 20


def proven_entries(text: str, messages: Sequence[Said], *, prompt: str) -> tuple[list[Entry], bool]:
    """Return the sentences of a model's text that the messages prove, and whether these are all.

    Its figures, dates and names must stand in messages, in whatever spelling, and a sentence
    without any must share a word with one. Nothing is returned for a text that is no summary:
    thoughts alone, a refusal, or a repetition of ``prompt``.
    """
    written = without_thoughts(text).strip()
    if not written or _REFUSAL.match(written) or _is_echo(written, prompt):
        return [], False
    sources = [_Source(each) for each in messages]
    sentences = list(islice(_statements(written), MAX_SENTENCES))
    proofs = [(sentence, _proof(sentence, sources)) for sentence in sentences]
    found = [written_entry(sentence, places) for sentence, places in proofs if places]
    return found, len(found) == len(sentences)


class _Source:
    """A message, and what of it a sentence can share."""

    def __init__(self, message: Said) -> None:
        self.place, self.day = message.place, message.day
        text = extraction.without_marks(message.line.content)
        self.days = set().union(*_named_days(text), _numbered_days(text))
        self.text = f"{text} ; {message.day.year}{_spellings(self.days)}"
        self.forms = _content(text)
        self.facts = facts_of(text)
        self.words = {fold(word) for word in [*split_words(text), *split_words(message.line.role)]}


def _is_echo(written: str, prompt: str) -> bool:
    """Return whether the text repeats a sentence of the prompt, or its fence."""
    folded = fold(session_data.one_line(written))
    sentences = (fold(each.text) for each in split_sentences(prompt))
    return bool(_FENCE.search(written)) or any(
        len(each) >= MIN_ECHO and each in folded for each in sentences
    )


def _statements(written: str) -> Iterator[str]:
    """Yield the sentences of each line, without markup, and with the speaker of the line."""
    for line in written.splitlines():
        bare = _ITEM.sub("", _MARKUP.sub("", line))
        for sentence in split_sentences(bare):
            if not sentence.text.rstrip().endswith(":"):
                yield sentence.text


def _proof(sentence: str, sources: Sequence[_Source]) -> tuple[int, ...]:
    """Return the places of the messages that prove a sentence; nothing if none do.

    Messages that share most with it are tried first.
    """
    bare = extraction.without_marks(_LABEL.sub("", sentence))
    forms, facts = _content(bare), facts_of(bare)
    shares = {
        source.place: len(forms & source.forms) + 2 * len(facts & source.facts)
        for source in sources
    }
    names = list(_names(bare))
    ranked = sorted(sources, key=lambda each: (-shares[each.place], -each.place))[:MAX_SOURCES]
    sharing = [source for source in ranked if shares[source.place]]
    # Most sentences that one message doesn't prove aren't proved at all.
    for count in (1, len(sharing)):
        if sharing and _stands(bare, names, sharing[:count]):
            break
    else:
        return ()
    while count > 1 and _stands(bare, names, sharing[: count - 1]):
        count -= 1
    return tuple(sorted(each.place for each in sharing[:count]))


def _content(text: str) -> set[str]:
    """Return the words of a text that aren't grammar, in the forms in which they are compared."""
    vague = {token.text for token in tokenize(text) if kind_of(token) is Kind.VAGUE}
    return extraction.forms_of([text]) | vague


def _stands(sentence: str, names: Sequence[str], sources: Sequence[_Source]) -> bool:
    words = set().union(*(source.words for source in sources))
    if not all(_is_named(name, words) for name in names):
        return False
    stated = set().union(*(source.days for source in sources))
    if any(dates.isdisjoint(stated) for dates in _named_days(sentence)):
        return False
    clause = " ; ".join(source.text for source in sources)
    days = sorted({source.day for source in sources})
    return any(extraction.numbers_stand(sentence, clause=clause, written_on=day) for day in days)


def _names(sentence: str) -> Iterator[str]:
    """Yield the names in a sentence, folded: words with a capital, and Hebrew names.

    The first word of a sentence counts if it is a known name, and in English unless it is a word of
    daily life.
    """
    tokens = {token.text: kind_of(token) for token in tokenize(sentence)}
    ordinary = (Kind.FUNCTION, Kind.VAGUE, Kind.COMMON)
    words = list(split_words(sentence))
    is_english = any(tokens.get(fold(word)) in ordinary and word.isascii() for word in words[1:])
    for place, word in enumerate(words):
        name = fold(word)
        may_be_name = place or (is_english and tokens.get(name) not in ordinary)
        if word[0].isupper() and len(word) > 1 and may_be_name and not _is_ordinary(word):
            yield name
    for entity in vocabulary.find_entities([session_data.Line("", sentence)]):
        # One of several words isn't always told whole.
        yield from (fold(word) for word in split_words(entity) if not _is_ordinary(word))


def _is_ordinary(word: str) -> bool:
    """Return whether the word is none of a name, whatever its first letter: "Twelve", "Friday"."""
    name = fold(word)
    return name in _ROLES or name in extraction.NUMBER_WORDS or is_unit(word) or _is_day(name)


def _is_named(name: str, words: set[str]) -> bool:
    """Return whether the name stands among the words, in any form of its language."""
    if name in words:
        return True
    beginning = name[: max(_MIN_NAME, len(name) - _ENDING)]
    return any(
        word.startswith(beginning)
        and abs(len(word) - len(name)) <= _ENDING
        # Hebrew prefixes stand before a name.
        or (len(name) >= _MIN_NAME and word.endswith(name))
        for word in words
    )


def _is_day(word: str) -> bool:
    """Return whether the word names a month or a weekday, which are compared as dates."""
    return word == "may" or any(
        [
            *extraction.calendar_numbers(word, "months"),
            *(day + 1 for day in extraction.calendar_numbers(word, "weekdays")),
        ]
    )


def _named_days(text: str) -> Iterator[set[tuple[int, int]]]:
    """Yield for each month that is named the days beside it, with the month."""
    words = extraction.words_of(text)
    for place, word in enumerate(words):
        near = words[max(0, place - _NEAR) : place + _NEAR + 1]
        days = [int(found[0]) for each in near if (found := re.match(r"\d{1,2}(?!\d)", each))]
        if days:
            yield from (
                {(day, month) for day in days}
                for month in extraction.calendar_numbers(word, "months")
            )


def _numbered_days(text: str) -> Iterator[tuple[int, int]]:
    """Yield dates in figures as day and month; in both orders where the year is left out."""
    for first, last in _SHORT_DATE.findall(text):
        yield from ((int(first), int(last)), (int(last), int(first)))
    for month, day, first, _sign, last in _LONG_DATE.findall(text):
        yield int(day or first), int(month or last)


def _spellings(days: set[tuple[int, int]]) -> str:
    """Return other spellings of the dates of a message: "01/03" for "1 March"."""
    return "".join(
        f" ; {day} {_MONTHS[month - 1]} ; {day}/{month} ; {day:02}/{month:02}"
        f" ; {month}/{day} ; {month:02}/{day:02} ; {day}.{month} ; {day:02}.{month:02}"
        for day, month in sorted(days)
        if 1 <= month <= 12 and 1 <= day <= 31
    )
