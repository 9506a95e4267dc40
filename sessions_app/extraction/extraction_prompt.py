"""Build the prompt of learning: a person's messages, and the task for the model.

It holds no recalled text and nothing of the assistant's profile.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

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
