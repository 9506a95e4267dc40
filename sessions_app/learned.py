"""What a model says that it learned, and whether people said it. Pure: no Django here.

Nothing of a model's answer is believed: its form is checked to the last field (fact_form.py), a
quote must stand in the message, and what the quote doesn't carry waits for staff.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from memoryproject.lib.text.kinds import Kind, kind_of
from memoryproject.lib.text.terms import word_forms
from memoryproject.lib.text.tokens import Token, tokenize

MOST_FACTS = 20
LONGEST_FACT = 1_000
_TELLING = (Kind.COMMON, Kind.PLAIN, Kind.NAME)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


class FactsFormError(Exception):
    """The model's answer isn't of the form that it was asked for. The text says what is wrong
    and holds nothing of the answer."""


def quoted_in(quote: str, texts: Sequence[str]) -> int | None:
    """The place of the first text in which the quote stands word for word; white space and
    invisible marks don't count. None where it stands in none: nobody said it."""
    wanted = _folded(quote)
    if not any(character.isalnum() for character in wanted):
        return None
    found = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
    for place, text in enumerate(texts):
        if found.search(_folded(text)):
            return place
    return None


def _folded(text: str) -> str:
    seen = (
        each for each in unicodedata.normalize("NFC", text) if unicodedata.category(each) != "Cf"
    )
    return " ".join("".join(seen).split())


def is_carried(content: str, *, said: Iterable[str], question: str) -> bool:
    """Whether people's own words carry a fact: at least half of its telling words are theirs
    (``said`` holds their messages and names), and none is taken from ``question``, the
    assistant's words. A short reply to a question makes a fact that isn't carried."""
    theirs, asked = _forms(said), _forms([question])
    telling = [token for token in tokenize(_DATE.sub(" ", content)) if kind_of(token) in _TELLING]
    own = [token for token in telling if _forms_of(token) & theirs]
    others = [token for token in telling if token not in own]
    borrowed = any(_forms_of(token) & asked for token in others)
    return not borrowed and len(own) * 2 >= len(telling) > 0


def _forms(texts: Iterable[str]) -> set[str]:
    return {form for text in texts for token in tokenize(text) for form in _forms_of(token)}


def _forms_of(token: Token) -> set[str]:
    forms = word_forms(token)
    return {forms.word, *forms.bare}
