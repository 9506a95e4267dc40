"""The order of a session's messages."""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.legacy_import.files.gather import FoundMessage


def numbered(messages: Iterable[FoundMessage]) -> list[tuple[int, FoundMessage]]:
    """The messages in their order, each with its number. Where two claim the same one, the
    later moves up, and so do those behind it as far as they must; gaps stay."""
    placed: list[tuple[int, FoundMessage]] = []
    last = 0
    for found in sorted(messages, key=_order):
        last = max(found.legacy.order_num, last + 1)
        placed.append((last, found))
    return placed


def _order(found: FoundMessage) -> tuple[object, ...]:
    legacy = found.legacy
    return legacy.order_num, legacy.timestamp, found.message_id
