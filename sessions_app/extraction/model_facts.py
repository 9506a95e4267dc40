"""Check that people said the facts of a model's answer. Pure: no Django here.

A model's answer isn't trusted: a quote must occur in the message, and a fact that the quote doesn't
support waits for staff. ``facts_form`` checks the answer's form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of, tokenize
from sessions_app.extraction.passage import (
    INFORMATIVE,
    Quote,
    forms_of_token,
    quote_place,
    without_marks,
)

_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_MIN_BEGINNING = 3


class FactsFormError(Exception):
    """The model's answer doesn't have the requested form.

    The text says what is wrong and holds nothing of the answer.
    """


def quoted_in(quote: str, texts: Sequence[str]) -> tuple[int, Quote] | None:
    """Return the index of the first text that holds the quote word for word, and the place in it.

    White space and invisible marks don't count. Returns None if no text holds it: nobody said it.
    """
    wanted = without_marks(quote)
    for index, text in enumerate(texts):
        found = quote_place(wanted, without_marks(text))
        if found is not None:
            return index, found
    return None


def is_carried(content: str, *, texts: Iterable[str], question: str) -> bool:
    """Return whether people's own words support a fact.

    At least half of its informative words are theirs (``texts``: their messages and names), and
    none is taken from ``question``, the assistant's words. A fact from a short reply to a question
    isn't supported. Numbers are compared by ``stated_numbers``, in any spelling.
    """
    their_forms, question_forms = _forms(texts), _forms([question])
    informative = [
        token for token in tokenize(_DATE.sub(" ", content)) if kind_of(token) in INFORMATIVE
    ]
    own = [
        token
        for token in informative
        if token.script == "number" or forms_of_token(token) & their_forms
    ]
    others = [token for token in informative if token not in own]
    borrowed = any(forms_of_token(token) & question_forms for token in others)
    return not borrowed and len(own) * 2 >= len(informative) > 0


def has_other_name(content: str, *, texts: Iterable[str]) -> bool:
    """Return whether a fact names somebody or something by a name that people didn't write."""
    their_forms = _forms(texts)
    return any(
        token.capitalised
        and not token.starts_sentence
        and kind_of(token) in (Kind.PLAIN, Kind.NAME)
        and not forms_of_token(token) & their_forms
        and not _is_declined(token, their_forms)
        for token in tokenize(content)
    )


def _is_declined(token: Token, known: set[str]) -> bool:
    """Return whether it may be a known name in another case, as in Russian."""
    beginning = token.text[: max(_MIN_BEGINNING, len(token.text) - 2)]
    return token.script == "other" and any(form.startswith(beginning) for form in known)


def _forms(texts: Iterable[str]) -> set[str]:
    return {form for text in texts for token in tokenize(text) for form in forms_of_token(token)}
