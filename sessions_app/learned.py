"""What a model says that it learned, and whether people said it. Pure: no Django here.

Nothing of a model's answer is believed: its form is checked to the last field, a quote must
stand in the message, and what the quote doesn't carry waits for staff.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memoryproject.lib.text.kinds import Kind, kind_of
from memoryproject.lib.text.terms import word_forms
from memoryproject.lib.text.tokens import Token, tokenize
from sessions_app.prompts.learning import KINDS

MOST_FACTS = 20
LONGEST_FACT = 1_000
_FIELDS = {"fact", "quote", "type", "confidence"}
_TELLING = (Kind.COMMON, Kind.PLAIN, Kind.NAME)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")


class FactsFormError(Exception):
    """The model's answer isn't of the form that it was asked for. The text says what is wrong
    and holds nothing of the answer."""


@dataclass(frozen=True)
class Fact:
    content: str
    quote: str
    type: str
    confidence: float


def read_facts(answer: str) -> list[Fact]:
    """The facts of a model's answer: an object of ``prompts.learning.FACTS``, bare or with
    words around it. Raises FactsFormError where anything is of another form."""
    data = _object_in(answer)
    if set(data) != {"facts"} or not isinstance(data["facts"], list):
        raise FactsFormError('The answer is no object with the one field "facts", a list.')
    if len(data["facts"]) > MOST_FACTS:
        raise FactsFormError(f"The answer lists more than {MOST_FACTS} facts.")
    return [_fact(entry) for entry in data["facts"]]


def _object_in(answer: str) -> dict[str, Any]:
    """Servers that can't be told the form may put words or a code fence around it."""
    begin, end = answer.find("{"), answer.rfind("}")
    try:
        data = json.loads(answer[begin : end + 1] if begin >= 0 else answer)
    except (ValueError, RecursionError):
        raise FactsFormError("The answer is no JSON.") from None
    if not isinstance(data, dict):
        raise FactsFormError("The answer is no JSON object.")
    return data


def _fact(entry: Any) -> Fact:
    if not isinstance(entry, dict) or set(entry) != _FIELDS:
        raise FactsFormError("A fact has not the fields that were asked for.")
    confidence = entry["confidence"]
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise FactsFormError('A fact\'s "confidence" is no number.')
    if not 0 <= confidence <= 1:
        raise FactsFormError('A fact\'s "confidence" is not from 0 to 1.')
    if entry["type"] not in KINDS:
        raise FactsFormError(f'A fact\'s "type" is none of {", ".join(KINDS)}.')
    content, quote = _text(entry["fact"]), _text(entry["quote"])
    return Fact(content, quote, entry["type"], float(confidence))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_FACT:
        raise FactsFormError(
            f'A fact\'s "fact" or "quote" is no text of 1 to {LONGEST_FACT} characters.'
        )
    if any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in value):
        raise FactsFormError("A fact has characters that can't be stored.")
    return value.strip()


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
