"""The parts of a chat API's message that are stored: tool calls, results, content in parts.

It is stored in the message's metadata under a name of our own, beside what the caller gave.
``content`` always has the text alone, for prompts, searches and summaries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoryproject.foundation.integrations.llm.base import message_tokens
from memoryproject.foundation.text.characters import estimate_tokens

FORM = "openai_message"
TOOL_CALLS, TOOL_CALL_ID, NAME, PARTS = "tool_calls", "tool_call_id", "name", "content_parts"


@dataclass(frozen=True)
class ChatForm:
    """``parts``: the content as it was given, if in parts; None for a text."""

    tool_calls: Sequence[Mapping[str, Any]] = ()
    tool_call_id: str = ""
    name: str = ""
    parts: Sequence[Mapping[str, Any]] | None = None

    def stored_in(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return the metadata with this form; unchanged where there is nothing to store."""
        found = {
            TOOL_CALLS: [dict(call) for call in self.tool_calls],
            TOOL_CALL_ID: self.tool_call_id,
            NAME: self.name,
            PARTS: None if self.parts is None else [dict(part) for part in self.parts],
        }
        form = {name: value for name, value in found.items() if value}
        return {**metadata, FORM: form} if form else dict(metadata)


NO_FORM = ChatForm()


def chat_form(metadata: Mapping[str, Any]) -> ChatForm:
    """Return the form that a message's metadata holds."""
    form = metadata.get(FORM)
    if not isinstance(form, dict):
        return NO_FORM
    return ChatForm(
        form.get(TOOL_CALLS, ()), form.get(TOOL_CALL_ID, ""), form.get(NAME, ""), form.get(PARTS)
    )


def own_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata as the caller gave it."""
    if FORM not in metadata:
        return metadata
    return {name: value for name, value in metadata.items() if name != FORM}


def text_of_parts(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of content in parts. A part that isn't text is named in its place.

    Its size in tokens isn't known, so prompts hold the name.
    """
    texts = []
    for part in parts:
        kind = str(part.get("type", ""))
        text = part.get(kind) if kind in ("text", "refusal") else None
        texts.append(text if isinstance(text, str) else f"[{_name_of(kind)}]")
    return "\n".join(texts)


def _name_of(kind: str) -> str:
    """Return "image" for image_url, and "audio" for input_audio."""
    return kind.removesuffix("_url").removeprefix("input_") or "part"


def stored_tokens(content: str, metadata: Mapping[str, Any]) -> int:
    """Return an estimate of the tokens that a stored message has in a prompt."""
    if FORM not in metadata:
        return estimate_tokens(content)
    return message_tokens(content, chat_form(metadata).tool_calls)


def form_size(value: object) -> int:
    """Return the size in bytes of what is to be stored as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))
