"""The form of a model's answer with facts, checked to the last field. Pure: no Django here."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sessions_app.extraction.extraction_prompt import FactsFormError, FactType

MAX_FACTS = 20
MAX_FACT_LENGTH = 1_000
_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)
_Text = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True, min_length=1, max_length=MAX_FACT_LENGTH, pattern=r"^[^\x00]*$"
    ),
]


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
