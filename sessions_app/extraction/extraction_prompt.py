"""Build the prompt of learning: a person's messages, and the task for the model.

It holds no recalled text and nothing of the assistant's profile.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from memoryproject.foundation.integrations.llm.base import AnswerSchema, ChatMessage, ChatRequest

FactType = Literal["fact", "preference", "contact", "date", "task"]
MAX_QUESTION_LENGTH = 1_000
MAX_NAME_LENGTH = 60

_FACT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "fact": {"type": "string"},
        "quote": {"type": "string"},
        "type": {"type": "string", "enum": list(get_args(FactType))},
        "confidence": {"type": "number"},
    },
    "required": ["fact", "quote", "type", "confidence"],
    "additionalProperties": False,
}
FACTS = AnswerSchema(
    name="facts",
    schema={
        "type": "object",
        "properties": {"facts": {"type": "array", "items": _FACT}},
        "required": ["facts"],
        "additionalProperties": False,
    },
)

TASK = Path(__file__).with_name("extraction_task.txt").read_text(encoding="utf-8")


class FactsFormError(Exception):
    """The model's answer doesn't have the requested form.

    The text says what is wrong and holds nothing of the answer.
    """


@dataclass(frozen=True)
class Written:
    """One message of a person; ``name`` is their WhatsApp name, which they choose."""

    text: str
    name: str = ""


def learning_request(
    *, messages: Sequence[Written], question: str, written_at: datetime, time_zone: str, fence: str
) -> ChatRequest:
    """Build the request for the model.

    ``fence`` must be unpredictable for the people who wrote the messages.
    """
    local = written_at.astimezone(ZoneInfo(time_zone))
    lines = [f"Written on {local:%A}, {local:%Y-%m-%d %H:%M} ({time_zone})."]
    if question.strip():
        # Only the end of the text is kept, because questions are at the end.
        lines.append(_fenced("assistant", fence, question.strip()[-MAX_QUESTION_LENGTH:]))
    for message in messages:
        name = " ".join(message.name.split())[:MAX_NAME_LENGTH]
        if name:
            lines.append(_fenced("name", fence, name))
        lines.append(_fenced("message", fence, message.text))
    system = TASK + json.dumps(FACTS.schema, separators=(",", ":"))
    return ChatRequest(
        [ChatMessage("system", system), ChatMessage("user", "\n".join(lines))], answer_schema=FACTS
    )


def _fenced(what: str, fence: str, text: str) -> str:
    return f"<{what}-{fence}>\n{text}\n</{what}-{fence}>"


# The form of a model's answer with facts, checked to the last field. Pure: no Django here.

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
