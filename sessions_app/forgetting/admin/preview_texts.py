"""Prepare the texts of a preview for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy

from sessions_app.conversations.facade import Change, ChangeKind, PreviewRecorder

TITLES: dict[ChangeKind, Any] = {
    ChangeKind.MEMORY: gettext_lazy("Memories to erase"),
    ChangeKind.DOCUMENT: gettext_lazy("Documents to erase"),
    ChangeKind.MESSAGE: gettext_lazy("Messages to erase"),
    ChangeKind.ANSWER: gettext_lazy("Answers that are cut"),
    ChangeKind.COMMAND: gettext_lazy("Commands of which only the name stays"),
    ChangeKind.QUOTE: gettext_lazy("Quotes to erase; the messages around them stay"),
    ChangeKind.SUMMARY: gettext_lazy("Summaries to be rewritten from what remains"),
    ChangeKind.CARD: gettext_lazy("Memory cards to be rebuilt from what remains"),
    ChangeKind.NOTE: gettext_lazy("Staff notes to erase or shorten"),
    ChangeKind.REPLAY: gettext_lazy("Replays of answers that are cleaned"),
    ChangeKind.PART: gettext_lazy("Answers on their way that are cut"),
    ChangeKind.DELIVERY: gettext_lazy("Raw deliveries that are emptied"),
}
PAGES = {
    ChangeKind.MEMORY: "memories_app_memory",
    ChangeKind.DOCUMENT: "memories_app_sourcedocument",
    ChangeKind.MESSAGE: "sessions_app_message",
    ChangeKind.ANSWER: "sessions_app_message",
    ChangeKind.COMMAND: "sessions_app_message",
    ChangeKind.QUOTE: "sessions_app_message",
    ChangeKind.REPLAY: "sessions_app_turn",
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


def preview_shown(recorder: PreviewRecorder) -> list[Section]:
    """Return the sections in the order of the kinds, without the empty ones."""
    return [_section(kind, recorder) for kind in ChangeKind if recorder.counts[kind]]


def _section(kind: ChangeKind, recorder: PreviewRecorder) -> Section:
    changes = recorder.changes[kind]
    lines = [Line(each.text, each.left, _address(kind, each)) for each in changes]
    count = recorder.counts[kind]
    return Section(TITLES[kind], count, lines, count - len(lines))


def _address(kind: ChangeKind, each: Change) -> str:
    page = PAGES.get(kind)
    return reverse(f"admin:{page}_change", args=[each.key]) if page else ""
