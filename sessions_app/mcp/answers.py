"""What a tool answers, within the tokens that the assistant has for it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp import types

from memoryproject.foundation.text.characters import estimate_tokens

Document = dict[str, Any]
# For the words about what was cut.
ROOM_FOR_NOTE = 60
# Ids and times stay whole, and what names something in the next call.
MIN_TEXT_LENGTH = 40
WHOLE = ("next", "identifier", "namespace", "whatsapp_chat")


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool. ``document``: the API's body.

    ``text``: the body in a form other than JSON; ``note``: information from the status or the
    headers.
    """

    document: Document
    text: str | None = None
    note: str = ""

    def shown(self) -> types.CallToolResult:
        text = compact(self.document) if self.text is None else self.text
        texts = [text, self.note] if self.note else [text]
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=each) for each in texts],
            structured_content=self.document,
        )

    def fits(self, limit: int) -> bool:
        """Return whether neither the structured content nor the text has more tokens."""
        return max(tokens_of(self.document), estimate_tokens(self.text or "")) <= limit


def compact(document: Document) -> str:
    """Return the JSON without spaces: assistants pay for each of them."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def tokens_of(document: Document) -> int:
    return estimate_tokens(compact(document))


def entries_within(entries: Sequence[Any], tokens: int) -> int:
    """Return how many of the first entries have at most so many tokens together."""
    for number, entry in enumerate(entries):
        tokens -= estimate_tokens(compact(entry)) + 1
        if tokens < 0:
            return number
    return len(entries)


def cut(result: ToolResult, lists: Sequence[str], limit: int) -> ToolResult:
    """Return the result in at most ``limit`` tokens, as far as its form allows.

    The last entries of ``lists`` are left out first. Where that isn't enough, all long texts and
    lists are shortened. ``cut`` says so, and how to get the rest.
    """
    room, document, done = limit - ROOM_FOR_NOTE, result.document, []
    for name in lists:
        entries = document[name]
        # A result without any entry would look as if there were none.
        kept = entries_within(entries, room - tokens_of({**document, name: []}))
        kept = max(kept, 1 if name == "results" else 0)
        if kept < len(entries):
            done.append(f"{name} has {kept} of {len(entries)} entries")
            document = {**document, name: entries[:kept]}
    if tokens_of(document) > room:
        done.append("long texts end with …")
        longest = len(compact(document))
        whole = document
        while tokens_of(document) > room and longest > 1:
            longest //= 2
            document = {name: _shortened(each, longest, name) for name, each in whole.items()}
    note = f"{'; '.join(done)}. For the rest, ask again with more max_tokens than {limit}."
    return ToolResult({"cut": note, **document}, note=result.note)


def _shortened(value: Any, longest: int, name: str = "") -> Any:
    if isinstance(value, str) and name not in WHOLE:
        most = max(longest, MIN_TEXT_LENGTH)
        return value if len(value) <= most else f"{value[: most - 1]}…"
    if isinstance(value, list):
        return [_shortened(each, longest) for each in value[:longest]]
    if isinstance(value, dict):
        return {name: _shortened(one, longest, name) for name, one in [*value.items()][:longest]}
    return value
