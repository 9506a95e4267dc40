"""Take the stored prompt of an answer apart, and put it together again with other parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from memoryproject.foundation.integrations.llm.base import ChatMessage, Picture
from sessions_app.recall.facade import CLIENTS_MEMORY
from sessions_app.trials.errors import TrialRefusedError
from sessions_app.turns.facade import (
    RECALLED_LABELS,
    fence_split,
    fenced_text,
    without_introduction,
)

SYSTEM = "system"
_LABELS = "|".join(re.escape(label) for label in RECALLED_LABELS)
_LABELS += rf"|{re.escape(CLIENTS_MEMORY)}[^()\n]+"
_RECALLED = re.compile(rf"^- \(({_LABELS}), \d{{4}}-\d\d-\d\d[^()\n]*\) ", re.MULTILINE)
_NOW = re.compile(r"^It is \w+, \d{4}-\d\d-\d\d \d\d:\d\d \(.*\)\.$", re.MULTILINE)


@dataclass(frozen=True)
class StoredPrompt:
    """The parts of a prompt as it was sent.

    ``instructions``: the system text up to the fence. ``data``: what stands in the fence: cards,
    the summary, the passage, and last the recalled texts. ``after``: the rest of the system text.
    ``conversation``: the messages.
    """

    instructions: str
    data: str
    after: str
    conversation: Sequence[ChatMessage]


def prompt_apart(
    prompt: Sequence[dict[str, Any]], pictures: Mapping[str, Picture] = MappingProxyType({})
) -> StoredPrompt:
    """Return the parts of a stored prompt. Raises TrialRefusedError where there is none.

    ``pictures``: those that its messages get again, by the ids of their messages.
    """
    if not prompt:
        raise TrialRefusedError("trial_no_record")
    if prompt[0].get("role") != SYSTEM:
        raise TrialRefusedError("trial_unreadable")
    text = str(prompt[0].get("content") or "")
    conversation = [_message(entry, pictures) for entry in prompt[1:]]
    found = fence_split(text)
    if found is None:
        return StoredPrompt(text.strip(), "", "", conversation)
    return StoredPrompt(without_introduction(found.before), found.data, found.after, conversation)


def recalled_apart(data: str, labels: Sequence[str]) -> tuple[str, list[str]]:
    """Divide what stands in the fence: what isn't recalled, and each recalled text.

    ``labels``: those of the recalled texts, in their order. Raises TrialRefusedError where the
    texts can't be told apart.
    """
    starts = list(_RECALLED.finditer(data))
    starts = starts[len(starts) - len(labels) :] if labels else []
    if [start[1] for start in starts] != list(labels):
        raise TrialRefusedError("trial_unreadable")
    places = [start.start() for start in starts]
    ends = [*places[1:], len(data)]
    texts = [data[start:end].rstrip("\n") for start, end in zip(places, ends, strict=True)]
    kept = data[: places[0]] if places else data
    return kept.rstrip("\n"), texts


def prompt_together(
    stored: StoredPrompt, *, fence: str, instructions: str, lines: Sequence[str]
) -> list[ChatMessage]:
    """Return the messages for the model: these instructions, these lines in the fence."""
    fenced = fenced_text(fence, [line for line in lines if line])
    sections = [instructions.strip(), fenced, stored.after]
    system = "\n\n".join(section for section in sections if section)
    return [ChatMessage(SYSTEM, system), *stored.conversation]


def with_day_of(instructions: str, stored: StoredPrompt) -> str:
    """Return the instructions with the day and time that the stored ones name."""
    then = _NOW.search(stored.instructions)
    return _NOW.sub(lambda _found: then[0], instructions, count=1) if then else instructions


def _message(entry: dict[str, Any], pictures: Mapping[str, Picture]) -> ChatMessage:
    return ChatMessage(
        role=str(entry.get("role", "")),
        content=str(entry.get("content") or ""),
        tool_calls=entry.get("tool_calls", ()),
        tool_call_id=str(entry.get("tool_call_id", "")),
        name=str(entry.get("name", "")),
        pictures=[pictures[key] for key in entry.get("pictures", ()) if key in pictures],
    )
