"""What a reader sees of a page: its words, without the tags."""

from __future__ import annotations

import html
import re
from typing import Any


def words_of(shown: str) -> str:
    """The words of a part of a page."""
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", shown).split()))


def words(answer: Any) -> str:
    """The words of the whole page."""
    return words_of(answer.content.decode())


def messages_of(answer: Any) -> list[str]:
    """The messages above the page, which say what was done or refused."""
    return [str(message) for message in answer.context["messages"]]


def said(answer: Any) -> str:
    """The same messages in one text."""
    return " ".join(messages_of(answer))


def found_in(pattern: str, page: str) -> str:
    """The first place of a page that fits: the group of the pattern, or all where it has none."""
    found = re.search(pattern, page, re.S)
    assert found is not None, pattern
    return found[1] if found.re.groups else found[0]
