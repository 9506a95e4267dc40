"""Check that people said the facts of a model's answer. Pure: no Django here.

A model's answer isn't trusted: a quote must occur in the message, and a fact that the quote doesn't
support waits for staff. ``facts_form`` checks the answer's form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from memoryproject.foundation.text.terms import word_forms
from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of, tokenize
from memoryproject.foundation.text.whole_text import whole_places

_STATEMENTS = (Kind.COMMON, Kind.PLAIN, Kind.NAME)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


class FactsFormError(Exception):
    """The model's answer doesn't have the requested form.

    The text says what is wrong and holds nothing of the answer.
    """


def quoted_in(quote: str, texts: Sequence[str]) -> int | None:
    """Return the index of the first text that holds the quote word for word.

    White space and invisible marks don't count. Returns None if no text holds it: nobody said it.
    """
    wanted = _folded(quote)
    if not any(character.isalnum() for character in wanted):
        return None
    for place, text in enumerate(texts):
        if whole_places(_folded(text), wanted):
            return place
    return None


def _folded(text: str) -> str:
    seen = (
        each for each in unicodedata.normalize("NFC", text) if unicodedata.category(each) != "Cf"
    )
    return " ".join("".join(seen).split())


def is_carried(content: str, *, texts: Iterable[str], question: str) -> bool:
    """Return whether people's own words support a fact.

    At least half of its informative words are theirs (``texts``: their messages and names), and
    none is taken from ``question``, the assistant's words. A fact from a short reply to a question
    isn't supported.
    """
    their_forms, question_forms = _forms(texts), _forms([question])
    informative = [
        token for token in tokenize(_DATE.sub(" ", content)) if kind_of(token) in _STATEMENTS
    ]
    own = [token for token in informative if _forms_of(token) & their_forms]
    others = [token for token in informative if token not in own]
    borrowed = any(_forms_of(token) & question_forms for token in others)
    return not borrowed and len(own) * 2 >= len(informative) > 0


def _forms(texts: Iterable[str]) -> set[str]:
    return {form for text in texts for token in tokenize(text) for form in _forms_of(token)}


def _forms_of(token: Token) -> set[str]:
    forms = word_forms(token)
    return {forms.word, *forms.bare}
