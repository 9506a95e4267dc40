"""Read the facts in a model's answer, and check that people said them. Pure: no Django here.

A model's answer isn't trusted: its form is checked to the last field, a quote must occur in the
message, and a fact that the quote doesn't support waits for staff.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memoryproject.foundation.text.terms import word_forms
from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of, tokenize
from sessions_app.extraction.extraction_prompt import FactType

MAX_FACTS = 20
MAX_FACT_LENGTH = 1_000
_STATEMENTS = (Kind.COMMON, Kind.PLAIN, Kind.NAME)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)
_Text = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=MAX_FACT_LENGTH, pattern=r"^[^\x00]*$"
    ),
]


class FactsFormError(Exception):
    """The model's answer doesn't have the requested form.

    The text says what is wrong and holds nothing of the answer.
    """


class Fact(BaseModel):
    """One statement, and the passage of a message that says it."""

    model_config = _STRICT

    content: _Text = Field(alias="fact")
    quote: _Text
    type: FactType
    confidence: float = Field(ge=0, le=1)


class _Answer(BaseModel):
    model_config = _STRICT

    facts: list[Fact] = Field(max_length=MAX_FACTS)


def read_facts(answer: str) -> list[Fact]:
    """Return the facts of a model's answer.

    The answer is an object of ``prompts.learning.FACTS``, bare or with words around it. Raises
    FactsFormError if anything has another form.
    """
    # Servers that can't request a form may put words or a code fence around it.
    begin, end = answer.find("{"), answer.rfind("}")
    try:
        return _Answer.model_validate_json(answer[begin : end + 1] if begin >= 0 else answer).facts
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        # The name of an unexpected field is a part of the answer.
        place = () if first["type"] == "extra_forbidden" else first["loc"]
        raise FactsFormError(".".join(map(str, ("answer", *place))) + f": {first['msg']}") from None


def quoted_in(quote: str, texts: Sequence[str]) -> int | None:
    """Return the index of the first text that holds the quote word for word.

    White space and invisible marks don't count. Returns None if no text holds it: nobody said it.
    """
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
