"""The query of a question: its words, how informative each is, and the terms that match it.

A word carries information by its kind (``text.kinds``) and by its rarity among the searched texts.
The rarity is a Bayesian estimate with a prior, so that it means the same with one text as with a
million: -log((df + m * prior) / (n + m)). The constants are chosen by hand and checked against
labelled pairs by ``benchmarks/calibrate_recall.py``: see docs/recall.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from memoryproject.foundation.text import english_words, hebrew_words
from memoryproject.foundation.text.terms import WordForms, answer_kinds_of_question, word_forms
from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of, tokenize

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound="Model")

# A longer question is a pasted text: its first words say what it is about.
MAX_QUERY_TERMS = 64

_BARE_ONE_SIDE = 0.95
_BARE_BOTH_SIDES = 0.8
_CONCEPT = 0.8
_SOUND = 0.75
_ROOT = 0.6

_ORDER = list(Kind)
_TELL_LITTLE = (Kind.FUNCTION, Kind.SOUGHT, Kind.VAGUE)
_PIECES = re.compile(r"\w+(?:['’]\w+)?|\W+")


@dataclass(frozen=True)
class QueryTerm:
    """One word of a question.

    ``alternatives`` maps each index term that counts as this word to the weight of the match, in
    (0, 1]; the word itself has weight 1.
    """

    word: str
    kind: Kind
    alternatives: tuple[tuple[str, float], ...]


def query_terms(text: str) -> list[QueryTerm]:
    """Return the distinct words of ``text`` in order, at most ``MAX_QUERY_TERMS`` of them."""
    tokens = list(tokenize(text[: 64 * MAX_QUERY_TERMS]))
    tokens = _without_shouting(tokens)
    terms: dict[str, QueryTerm] = {}
    for token, kind in zip(tokens, _kinds(tokens), strict=True):
        term = _query_term(word_forms(token), kind)
        known = terms.get(term.word)
        if known is None and len(terms) == MAX_QUERY_TERMS:
            break
        if known is not None and _ORDER.index(known.kind) >= _ORDER.index(kind):
            continue
        terms[term.word] = term
    sought = answer_kinds_of_question(text[: 64 * MAX_QUERY_TERMS])
    if sought and terms:
        alternatives = tuple((f"?{kind}", 1.0) for kind in sought)
        terms["?"] = QueryTerm("?", Kind.SOUGHT, alternatives)
    return list(terms.values())[:MAX_QUERY_TERMS]


def informative_terms(terms: Sequence[QueryTerm]) -> list[QueryTerm]:
    """Return the words that can make a text a candidate; all words if none is informative."""
    return list(filter(is_informative, terms)) or list(terms)


def is_informative(term: QueryTerm) -> bool:
    """Return whether the word can name a topic."""
    return term.kind not in _TELL_LITTLE


def with_words(rows: QuerySet[Row], text: str) -> QuerySet[Row]:
    """Return the rows whose ``terms`` have every content word of the text, in any of its forms.

    Return none if the text has no content word.
    """
    terms = informative_terms(query_terms(text))
    if not terms:
        return rows.none()
    for term in terms:
        forms = [form for form, _ in term.alternatives if not form.startswith(("@", "="))]
        rows = rows.filter(terms__overlap=forms)
    return rows


def text_without(text: str, words: Collection[str]) -> str:
    """Return ``text`` without these words, given as ``QueryTerm.word``.

    Returns the text unchanged if nothing informative would be left.
    """
    if not words:
        return text
    kept = "".join(piece for piece in _PIECES.findall(text) if not _names(piece, words))
    if any(term.kind not in (Kind.FUNCTION, Kind.SOUGHT) for term in query_terms(kept)):
        return kept
    return text


def _names(piece: str, words: Collection[str]) -> bool:
    return any(word_forms(token).word in words for token in tokenize(piece))


def _query_term(forms: WordForms, kind: Kind) -> QueryTerm:
    alternatives = {forms.word: 1.0, "~" + forms.word: _BARE_ONE_SIDE}
    if kind is Kind.FUNCTION and forms.concept is None:
        # Grammar words are compared as written: their variants are in every text.
        return QueryTerm(forms.word, kind, ((forms.word, 1.0),))
    for form in forms.bare:
        alternatives.setdefault(form, _BARE_ONE_SIDE)
        alternatives.setdefault("~" + form, _BARE_BOTH_SIDES)
    for sound in forms.sounds:
        alternatives["@" + sound] = _SOUND
    if forms.concept:
        alternatives["=" + forms.concept] = _CONCEPT
    if forms.root:
        alternatives["*" + forms.root] = _ROOT
    return QueryTerm(forms.word, kind, tuple(alternatives.items()))


def _without_shouting(tokens: list[Token]) -> list[Token]:
    """Ignore capitals if every word is capitalised, because they carry no information then."""
    latin = [token for token in tokens if token.script == "latin" and not token.whole]
    if len(latin) > 2 and all(token.capitalised for token in latin):
        return [replace(token, capitalised=False) for token in tokens]
    return tokens


def _kinds(tokens: list[Token]) -> list[Kind]:
    hebrew = any(token.script == "hebrew" for token in tokens)
    kinds = []
    topic_next = False
    for token in tokens:
        kind = kind_of(token)
        named = topic_next or _spelt_as_name(token) or (hebrew and token.script == "latin")
        if kind is Kind.PLAIN and named:
            kind = Kind.NAME
        kinds.append(kind)
        if token.text in english_words.TOPIC_MARKERS | hebrew_words.TOPIC_MARKERS:
            topic_next = True
        elif kind is not Kind.FUNCTION:
            topic_next = False
    return kinds


def _spelt_as_name(token: Token) -> bool:
    return token.capitalised and not token.starts_sentence


@dataclass(frozen=True)
class KindPrior:
    """The prior of a kind of words.

    ``gain`` scales the information of a word of this kind, ``share`` is the share of texts expected
    to hold it, ``unknown`` how much it still counts if no searched text has it.
    """

    gain: float
    share: float
    unknown: float


PRIORS: Mapping[Kind, KindPrior] = {
    Kind.FUNCTION: KindPrior(gain=0.03, share=0.3, unknown=0.3),
    # Judged separately, see ``reranking``.
    Kind.SOUGHT: KindPrior(gain=0.0, share=0.2, unknown=0.3),
    Kind.VAGUE: KindPrior(gain=0.2, share=0.1, unknown=0.15),
    Kind.COMMON: KindPrior(gain=0.8, share=0.02, unknown=0.35),
    Kind.PLAIN: KindPrior(gain=1.0, share=0.005, unknown=0.9),
    Kind.NAME: KindPrior(gain=1.25, share=0.002, unknown=1.0),
}
# Words that ask for something specific; "what" and "מה" may not.
ASKING = frozenset(
    ("where", "who", "why", "when", "how", "which")
    + ("איפה", "היכנ", "מי", "למה", "מדוע", "מתי", "איכ", "איזה", "איזו")
)
# Kinds of words that a question may ask for besides names.
INFORMATIVE = (Kind.PLAIN, Kind.COMMON)


@dataclass(frozen=True)
class Constants:
    """The constants of the score; the defaults are those in use.

    ``prior_texts``: the number of texts that the prior of a word's rarity is worth. ``saturation``
    and ``length_effect``: k1 and b of BM25. ``even_coverage`` and ``coverage_slope``: the coverage
    at which a text is as likely relevant as not, and the steepness there. ``enough_information``:
    below about this much, a question ("ok, thanks") finds nothing. ``vector_weight``: the weight of
    the vector's log-odds next to those of the words. ``lowest_lexical``: how certain the words
    alone can be that a text is irrelevant. ``part_worth``: the value of an answer to one question
    of a message, compared with one to all of it.
    """

    priors: Mapping[Kind, KindPrior] = field(default_factory=lambda: PRIORS)
    prior_texts: float = 20.0
    saturation: float = 0.5
    length_effect: float = 0.3
    even_coverage: float = 0.38
    coverage_slope: float = 3.0
    enough_information: float = 1.0
    vector_weight: float = 0.5
    lowest_lexical: float = 0.02
    part_worth: float = 0.95


IN_USE = Constants()

# The assumed mean length of messages and notes, if too few are known.
_USUAL_LENGTH = 15.0
_USUAL_LENGTH_TEXTS = 10.0


@dataclass(frozen=True)
class Scope:
    """Statistics of the searched texts.

    How many there are, their mean length in words, and for each query term how many of them hold
    one of its alternatives.
    """

    texts: int
    average_length: float
    frequencies: Sequence[int]


@dataclass(frozen=True)
class LexicalQuery:
    """A question weighted for one scope.

    terms: the weight of each and its alternatives. kinds: of each. specific: the information that
    the question asks for besides its topic (names, or else its rarest word), as far as a text may
    be expected to hold it.
    """

    terms: Sequence[tuple[float, Sequence[tuple[str, float]]]]
    kinds: Sequence[Kind]
    specific: float
    total: float
    substance: float
    average_length: float
    constants: Constants

    def best_share(self, held: Sequence[bool]) -> float:
        """Return about the share of the question that a text with these terms can cover.

        ``held`` is parallel to ``terms``. For choosing candidates.
        """
        if self.total <= 0:
            return 0.0
        found = sum(weight for (weight, _), here in zip(self.terms, held, strict=True) if here)
        return min(1.0, found / self.total) * self.substance


def weigh_query(
    terms: Sequence[QueryTerm], scope: Scope, *, constants: Constants = IN_USE
) -> LexicalQuery:
    """Return ``terms`` weighted by the statistics of ``scope``.

    Raises ValueError when ``scope`` hasn't one frequency a term.
    """
    if len(scope.frequencies) != len(terms):
        raise ValueError("a scope needs one frequency for each query term")
    weighed = []
    total = information = 0.0
    informative = []
    for term, frequency in zip(terms, scope.frequencies, strict=True):
        prior = constants.priors[term.kind]
        weight = prior.gain * _surprise(frequency, scope.texts, prior.share, constants.prior_texts)
        information += prior.gain * -math.log(prior.share)
        expected = weight if frequency else weight * prior.unknown
        total += expected
        if term.kind in INFORMATIVE:
            informative.append(expected)
        weighed.append((weight, term.alternatives))
    if len(informative) == 1 and not any(_asks_something(term) for term in terms):
        # The question is about this one word and asks nothing about it.
        informative = []
    return LexicalQuery(
        terms=weighed,
        kinds=[term.kind for term in terms],
        specific=sum(informative),
        total=total,
        substance=1 - math.exp(-information / constants.enough_information),
        average_length=_smoothed_length(scope),
        constants=constants,
    )


def _asks_something(term: QueryTerm) -> bool:
    """Return whether the term makes a question with one topic word ask something about it."""
    return term.kind in (Kind.NAME, Kind.SOUGHT) or term.word in ASKING


def _surprise(frequency: int, texts: int, share: float, prior_texts: float) -> float:
    expected = (min(frequency, texts) + prior_texts * share) / (texts + prior_texts)
    return -math.log(expected)


def _smoothed_length(scope: Scope) -> float:
    words = scope.texts * scope.average_length + _USUAL_LENGTH_TEXTS * _USUAL_LENGTH
    return words / (scope.texts + _USUAL_LENGTH_TEXTS)
