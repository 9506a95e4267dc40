"""Errors of chat memory (seed 003, section 5.7)."""

from __future__ import annotations

from uuid import UUID


class ChatMemoryError(Exception):
    """The base of the errors of chat memory."""


class DataValidationError(ChatMemoryError, ValueError):
    """The data is invalid, and nothing of it was stored.

    The text says what is wrong, where, and how to correct it.
    """


class SessionArchivedError(DataValidationError):
    """The session is archived, which makes it read-only."""


class ConversationNotFoundError(ChatMemoryError):
    """There is no session with this id."""

    def __init__(self, conversation_id: UUID | str) -> None:
        super().__init__(f"There is no session {conversation_id}.")
        self.conversation_id = conversation_id


class GenericMemoryError(ChatMemoryError):
    """The database or a skill failed.

    The cause is its ``__cause__``. The data is unchanged.
    """
