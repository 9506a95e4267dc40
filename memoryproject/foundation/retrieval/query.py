"""The words of a question, the index terms that match each, and the passage that fits best."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from memoryproject.foundation.text import characters, chunks, tokenizer, word_lists
from memoryproject.foundation.text.terms import WordForms, word_forms

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound="Model")

# A longer question is a pasted text: its first words say what it is about.
MAX_QUERY_TERMS = 64

_ORDER = list(tokenizer.Kind)
_TELL_LITTLE = (tokenizer.Kind.FUNCTION, tokenizer.Kind.VAGUE)
_PIECES = re.compile(r"\w+(?:['’]\w+)?|\W+")


@dataclass(frozen=True)
class QueryTerm:
    """One word of a question.

    ``forms``: the index terms that count as this word.
    """

    word: str
    kind: tokenizer.Kind
    forms: tuple[str, ...]


def query_terms(text: str) -> list[QueryTerm]:
    """Return the distinct words of ``text`` in order, at most ``MAX_QUERY_TERMS`` of them."""
    tokens = list(tokenizer.tokenize(text[: 64 * MAX_QUERY_TERMS]))
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
    return list(terms.values())


def informative_terms(terms: Sequence[QueryTerm]) -> list[QueryTerm]:
    """Return the words that can make a text a candidate; all words if none is informative."""
    return list(filter(is_informative, terms)) or list(terms)


def is_informative(term: QueryTerm) -> bool:
    """Return whether the word can name a topic."""
    return term.kind not in _TELL_LITTLE


def with_words(rows: QuerySet[Row], text: str, *, each: bool = False) -> QuerySet[Row]:
    """Return the rows whose ``terms`` have every content word of the text, in any of its forms.

    ``each``: also those words that tell little. Return none if the text has no word.
    """
    terms = query_terms(text) if each else informative_terms(query_terms(text))
    if not terms:
        return rows.none()
    for term in terms:
        written = [form for form in term.forms if not form.startswith("@")]
        rows = rows.filter(terms__overlap=written)
    return rows


def text_without(text: str, words: Collection[str]) -> str:
    """Return ``text`` without these words, given as ``QueryTerm.word``.

    Returns the text unchanged if nothing informative would be left.
    """
    if not words:
        return text
    kept = "".join(piece for piece in _PIECES.findall(text) if not _names(piece, words))
    if any(term.kind is not tokenizer.Kind.FUNCTION for term in query_terms(kept)):
        return kept
    return text


def _names(piece: str, words: Collection[str]) -> bool:
    return any(word_forms(token).word in words for token in tokenizer.tokenize(piece))


def _query_term(forms: WordForms, kind: tokenizer.Kind) -> QueryTerm:
    if kind is tokenizer.Kind.FUNCTION:
        # Grammar words are compared as written: their variants are in every text.
        return QueryTerm(forms.word, kind, (forms.word,))
    found = [forms.word, "~" + forms.word]
    for form in forms.bare:
        found += [form, "~" + form]
    found += ["@" + sound for sound in forms.sounds]
    return QueryTerm(forms.word, kind, tuple(dict.fromkeys(found)))


def _without_shouting(tokens: list[tokenizer.Token]) -> list[tokenizer.Token]:
    """Ignore capitals if every word is capitalised, because they carry no information then."""
    latin = [token for token in tokens if token.script == "latin" and not token.whole]
    if len(latin) > 2 and all(token.capitalised for token in latin):
        return [replace(token, capitalised=False) for token in tokens]
    return tokens


def _kinds(tokens: list[tokenizer.Token]) -> list[tokenizer.Kind]:
    hebrew = any(token.script == "hebrew" for token in tokens)
    kinds = []
    topic_next = False
    for token in tokens:
        kind = tokenizer.kind_of(token)
        named = topic_next or _spelt_as_name(token) or (hebrew and token.script == "latin")
        if kind is tokenizer.Kind.PLAIN and named:
            kind = tokenizer.Kind.NAME
        kinds.append(kind)
        if token.text in word_lists.ENGLISH.topic_markers | word_lists.HEBREW.topic_markers:
            topic_next = True
        elif kind is not tokenizer.Kind.FUNCTION:
            topic_next = False
    return kinds


def _spelt_as_name(token: tokenizer.Token) -> bool:
    return token.capitalised and not token.starts_sentence


# Words that ask for something specific; "what" and "מה" may not.
ASKING = frozenset(
    ("where", "who", "why", "when", "how", "which")
    + ("איפה", "היכנ", "מי", "למה", "מדוע", "מתי", "איכ", "איזה", "איזו")
)


# The passage of a long text that fits a question best.

MARK = "…"
# A shorter part of a word is in too many others.
MIN_FORM_LENGTH = 3


def best_passage(text: str, query: str, *, tokens: int) -> str:
    """Return ``text`` in at most ``tokens`` tokens: the passage with most words of the query.

    Marks stand for what is left out before and after it. A passage ends at the end of a sentence
    if possible. The first one is returned where none has a word of the query.
    """
    if characters.estimate_tokens(text) <= tokens:
        return text
    # The beginning may be in another script than the rest, so the result is measured again.
    longest = max(characters.characters_within(text, tokens - 2), 1)
    passages = chunks.cut_text(text, target=max(longest * 3 // 4, 1), most=longest)
    if not passages:
        return MARK
    forms = [_forms(term) for term in informative_terms(query_terms(query))]
    best = max(passages, key=lambda passage: _shared(passage.text, forms))
    before = f"{MARK} " if best.start > passages[0].start else ""
    after = f" {MARK}" if best.end < passages[-1].end else ""
    return characters.cut_to_tokens(f"{before}{best.text}{after}", tokens)


def _shared(passage: str, forms: list[set[str]]) -> int:
    """Return how many words of the query are in the passage."""
    folded = characters.fold(passage)
    return sum(any(form in folded for form in each) for each in forms)


def _forms(term: QueryTerm) -> set[str]:
    """Return the beginnings of the words that count as this one."""
    written = {form.lstrip("~") for form in term.forms if form[0] != "@"}
    # The stem of "delivery" is "deliveri".
    stems = {form[:-1] if form.endswith("i") else form for form in written}
    return {form for form in stems if len(form) >= MIN_FORM_LENGTH} or stems
