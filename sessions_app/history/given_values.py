"""Check what callers give to the history of conversations; all errors are DataValidationError."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sessions_app.conversations.facade import ConversationMessage, DataValidationError


def session_id_of(given: object) -> UUID:
    """Return a session_id, given as UUID or as its text."""
    if isinstance(given, UUID):
        return given
    if isinstance(given, str):
        try:
            return UUID(given)
        except ValueError:
            pass
    raise DataValidationError(
        f"conversation_id: must be a session_id (a UUID), not {_shown(given)}."
    )


def check_count(name: str, given: object) -> None:
    """Check a number of messages, 1 or more; None stands for no limit."""
    if given is None:
        return
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise DataValidationError(f"{name}: must be 1 or more, not {_shown(given)}.")


def check_time(name: str, given: object) -> None:
    """Check a time with its zone; None stands for none."""
    if given is None:
        return
    if not isinstance(given, datetime):
        raise DataValidationError(f"{name}: must be a date and time, not {_shown(given)}.")
    if given.tzinfo is None:
        raise DataValidationError(f"{name}: must have a time zone, such as a Z at its end.")


def check_messages(given: object) -> None:
    """Check that these are messages; their fields are checked one by one afterwards."""
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise DataValidationError(f"messages: must be a list, not {_shown(given)}.")
    for place, message in enumerate(given):
        if not isinstance(message, ConversationMessage):
            raise DataValidationError(
                f"messages[{place}]: must be a ConversationMessage, not {type(message).__name__}."
            )


def _shown(given: object) -> str:
    if isinstance(given, int):
        return str(given) if abs(given) < 10**9 else "such a number"
    return type(given).__name__ if not isinstance(given, str) else f"{given[:40]!r}"
