"""Number a session's messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessions_app.legacy_import.files.gather import FoundMessage


def numbered(messages: Iterable[FoundMessage]) -> list[tuple[int, FoundMessage]]:
    """Return the messages in order, each with its number.

    If two claim the same number, the later one moves up, and so do those after it as far as
    necessary; gaps stay.
    """
    placed: list[tuple[int, FoundMessage]] = []
    last = 0
    for found in sorted(messages, key=_order):
        last = max(found.legacy.order_num, last + 1)
        placed.append((last, found))
    return placed


def _order(found: FoundMessage) -> tuple[object, ...]:
    legacy = found.legacy
    return legacy.order_num, legacy.timestamp, found.message_id
