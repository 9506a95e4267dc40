"""Prepare the texts of a preview for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy

from sessions_app.conversations.facade import PreviewRecorder, Seen, What

TITLES: dict[What, Any] = {
    What.MEMORY: gettext_lazy("Memories to erase"),
    What.DOCUMENT: gettext_lazy("Documents to erase"),
    What.MESSAGE: gettext_lazy("Messages to erase"),
    What.ANSWER: gettext_lazy("Answers that are cut"),
    What.COMMAND: gettext_lazy("Commands of which only the name stays"),
    What.QUOTE: gettext_lazy("Quotes that go; the messages around them stay"),
    What.SUMMARY: gettext_lazy("Summaries that go and are written again of what is left"),
    What.CARD: gettext_lazy("Memory cards that go and are made again of what is left"),
    What.NOTE: gettext_lazy("Notes of staff that go or are cut"),
    What.REPLAY: gettext_lazy("Replays of answers that are cleaned"),
    What.PART: gettext_lazy("Answers on their way that are cut"),
    What.DELIVERY: gettext_lazy("Raw deliveries that are emptied"),
}
PAGES = {
    What.MEMORY: "memories_app_memory",
    What.DOCUMENT: "memories_app_sourcedocument",
    What.MESSAGE: "sessions_app_message",
    What.ANSWER: "sessions_app_message",
    What.COMMAND: "sessions_app_message",
    What.QUOTE: "sessions_app_message",
    What.REPLAY: "sessions_app_turn",
}


@dataclass(frozen=True)
class Line:
    text: str
    left: str
    address: str


@dataclass(frozen=True)
class Section:
    """A heading with the texts to show; ``more`` is the number of texts that aren't shown."""

    title: Any
    count: int
    lines: Sequence[Line]
    more: int


def preview_shown(witness: PreviewRecorder) -> list[Section]:
    """Return the sections in the order of the kinds, without the empty ones."""
    return [_section(what, witness) for what in What if witness.counts[what]]


def _section(what: What, witness: PreviewRecorder) -> Section:
    seen = witness.seen[what]
    lines = [Line(each.text, each.left, _address(what, each)) for each in seen]
    count = witness.counts[what]
    return Section(TITLES[what], count, lines, count - len(lines))


def _address(what: What, each: Seen) -> str:
    page = PAGES.get(what)
    return reverse(f"admin:{page}_change", args=[each.key]) if page else ""
