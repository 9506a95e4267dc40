"""The language that a person writes in: one of those that have a file in ``languages``.

The library py3langid knows them all. Greetings, names and Hindi in Latin letters it takes for
anything: the words of our phrases, and the chat's language so far, are weighed with what it says.
docs/whatsapp.md has the measurement.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import cache
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

from sessions_app.conversations import history_queries, phrases
from sessions_app.models import Chat, Message, Role

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# Weights of the evidence, as logarithms of odds: all words are a language's own by our phrases; the
# chat's language so far; where a chat has none yet, English and those that are expected.
WORDS, BEFORE, EXPECTED = 6.0, 2.0, 1.0
# Many letters of Ukrainian are its own: a text that has none of them is rather Russian. The
# library takes no account of what is missing. By letter.
NO_UKRAINIAN = 0.05
_UKRAINIAN = re.compile("[\u0454\u0456\u0457\u0491]", re.IGNORECASE)
# The library doesn't rule a language out.
MIN_PROBABILITY = 0.03
LIKELY, SURE_OF_BOTH, SURE = 0.35, 0.5, 0.8
# One or two foreign words are no change of language.
MIN_WORDS = 3
# Letters of our languages. Of others the library would choose the least unlikely one.
_LETTERS = re.compile(
    "[A-Za-z\u00c0-\u024f\u1e00-\u1eff\u0400-\u04ff\u05d0-\u05ea\u0620-\u06ff\u0900-\u097f]"
)
# Letters of Persian, Urdu and Kurdish that Arabic hasn't.
_NOT_ARABIC = re.compile("[\u06a9\u06ba\u06cc\u06d2]")
_SHARED_NOUNS = (
    phrases.BOOKED,
    phrases.PERSON_END,
    *phrases.WISHES,
    *phrases.DENIALS,
    "hours_fill",
    "stop_asked",
    "stop_marketing",
)
# Parts of addresses and mentions.
_NO_WORDS = ("://", "www.", "@")


class Guess(NamedTuple):
    """The likeliest language, "" for none; its probability, and of how many words it was told."""

    language: str
    probability: float
    words: int


def language_learn(*, chat: Chat, text: str, spoken: str = "") -> None:
    """Store the language in which the person writes now, unless staff have fixed it.

    ``spoken``: the language of the command that the text is, if it is one in plain words.
    """
    if chat.fixed_language:
        return
    expected = set() if chat.language else _expected(chat)
    # Words that languages share decide nothing: what follows them does, if anything.
    if text.strip() and not any(
        _known_words().get(word.text) == {spoken} for word in phrases.words_of(text)
    ):
        before = chat.language
        found = language_of(text, before, lambda: _text_before(chat, text), expected=expected)
        spoken = found or spoken
    if spoken and spoken != chat.language:
        chat.language = spoken
        chat.save(update_fields=["language", "updated_at"])


def _expected(chat: Chat) -> set[str]:
    """Return the languages of the business, and those of the country of the person's number."""
    spoken = {code.strip() for code in history_queries.profile_current().languages.split(",")}
    number = chat.client_phone.lstrip("+")
    codes = {
        code
        for code, data in phrases.languages().items()
        if number.startswith(tuple(data["phone_codes"]))
    }
    return spoken & phrases.languages().keys() | (codes if number else set())


def language_of(
    text: str,
    before: str = "",
    previous: Callable[[], str] | None = None,
    *,
    expected: Collection[str] = (),
) -> str:
    """Return the code of the person's language; "" where it isn't known.

    ``before``: the chat's language, which stays where the words tell no other, or few words do.
    ``previous``: returns the person's message before this one, if it is needed: two short messages
    in another language are enough. ``expected``: what a person would rather write who has written
    nothing yet.
    """
    guess = _guess(text, before, expected)
    if not before or guess.language in ("", before):
        return guess.language or before
    if guess.probability >= SURE and guess.words >= MIN_WORDS:
        return guess.language
    both = _guess(f"{previous()}\n{text}", before) if previous else guess
    is_sure = both.probability >= SURE_OF_BOTH and both.words >= MIN_WORDS
    return both.language if is_sure and both.language == guess.language else before


def is_common(word: str) -> bool:
    """Return whether the folded word is one of those that occur in every text of a language."""
    return word in _common_words()


def _guess(text: str, before: str, expected: Collection[str] = ()) -> Guess:
    written = text[: phrases.MAX_LENGTH].split()
    text = " ".join(each for each in written if not any(part in each for part in _NO_WORDS))
    letters = sum(map(str.isalpha, text))
    is_foreign = len(_NOT_ARABIC.findall(text)) > 1 or len(_LETTERS.findall(text)) * 2 < letters
    if not letters or is_foreign:
        return Guess("", 0.0, 0)
    words = phrases.words_of(text)
    known = [_known_words().get(word.text, ()) for word in words]
    if text.isascii() and len(words) < MIN_WORDS and not any(known):
        # A name, or "question 5", which may be of several languages.
        return Guess("", 0.0, len(words))
    weights = {each: log(max(share, MIN_PROBABILITY)) for each, share in _library().rank(text)}
    for codes in known:
        for language in codes:
            weights[language] += WORDS / len(codes) / len(words)
    if "¿" in text or "¡" in text:
        weights["es"] += WORDS
    if not _UKRAINIAN.search(text):
        weights["uk"] -= NO_UKRAINIAN * letters
    for likely in (before,) if before in weights else {"en", *expected}:
        weights[likely] += BEFORE if before else EXPECTED
    language = max(weights, key=lambda each: weights[each])
    probability = 1 / sum(exp(weight - weights[language]) for weight in weights.values())
    return Guess(language if probability >= LIKELY else "", probability, len(words))


def _text_before(chat: Chat, text: str) -> str:
    """Return what the person wrote before; a text that is sent again tells nothing new.

    Neither does a command, whose argument the text may be.
    """
    written = Message.objects.filter(chat=chat, role=Role.USER).exclude(content__in=("", text))
    written = written.exclude(content__startswith="/")
    return written.order_by("-received_at").values_list("content", flat=True).first() or ""


@cache
def _library() -> LanguageIdentifier:
    """Return the library's model, which takes half a second to load, and 52 MB."""
    # It loads numpy, which most programs don't need.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(phrases.languages())
    # Of all other languages; nothing needs them again.
    identifier._full_model = ()
    return identifier


@cache
def _common_words() -> dict[str, set[str]]:
    common: dict[str, set[str]] = defaultdict(set)
    for language, data in phrases.languages().items():
        for word in {word.text for each in data["common"] for word in phrases.words_of(each)}:
            common[word].add(language)
    return dict(common)


@cache
def _known_words() -> dict[str, set[str]]:
    """Return the languages of each word of our phrases and of the common words."""
    known = defaultdict(set, {word: set(codes) for word, codes in _common_words().items()})
    for found in phrases.patterns().values():
        # Those of wishes and denials have nouns of several languages: "question".
        for pattern in (each for each in found if each.kind not in _SHARED_NOUNS):
            for piece in pattern.pieces:
                for word in {word for choice in piece.choices for word in choice if len(word) > 1}:
                    known[word].add(pattern.language)
    return dict(known)
