"""Questions with choices as the Cloud API takes them: reply buttons, or a list."""

from collections.abc import Sequence
from typing import Any

from memoryproject.foundation.integrations.whatsapp.base import Choice
from memoryproject.foundation.integrations.whatsapp.outgoing_text import shortened, text_length

# Meta, "Interactive reply buttons" and "Interactive list messages".
_MAX_BUTTONS = 3
_MAX_BUTTONS_TEXT = 1024
_BUTTON_TITLE, _ROW_TITLE, _ROW_DESCRIPTION, _OPENER = 20, 24, 72, 20


def interactive_content(text: str, choices: Sequence[Choice], opener: str) -> dict[str, Any]:
    """Return reply buttons, or a list where these are too many or the text is too long."""
    as_buttons = len(choices) <= _MAX_BUTTONS and text_length(text) <= _MAX_BUTTONS_TEXT
    titles = _titles(choices, _BUTTON_TITLE if as_buttons else _ROW_TITLE)
    if as_buttons:
        buttons = [
            {"type": "reply", "reply": {"id": choice.id, "title": title}}
            for choice, title in zip(choices, titles, strict=True)
        ]
        return {"type": "button", "body": {"text": text}, "action": {"buttons": buttons}}
    rows = []
    for choice, title in zip(choices, titles, strict=True):
        row = {"id": choice.id, "title": title}
        # A title that is cut is shown whole below.
        cut_off = choice.title if title.endswith("…") else ""
        if about := choice.description or cut_off:
            row["description"] = shortened(about, _ROW_DESCRIPTION)
        rows.append(row)
    action = {"button": shortened(opener, _OPENER), "sections": [{"rows": rows}]}
    return {"type": "list", "body": {"text": text}, "action": action}


def _titles(choices: Sequence[Choice], most: int) -> list[str]:
    """Return the titles as they are shown: Meta refuses two buttons that look alike."""
    titles = [shortened(choice.title, most) for choice in choices]
    if len(set(titles)) == len(titles):
        return titles
    numbered = (f"{number}. {choice.title}" for number, choice in enumerate(choices, start=1))
    return [shortened(title, most) for title in numbered]
