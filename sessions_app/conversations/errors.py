"""The errors of chat memory (seed 003, section 5.7)."""

from __future__ import annotations

from uuid import UUID


class ChatMemoryError(Exception):
    """Chat memory could not do what was asked. The base of the others."""


class DataValidationError(ChatMemoryError, ValueError):
    """What was to be stored is wrong; nothing of it was stored. The text says what is wrong,
    where, and what to do."""


class SessionArchivedError(DataValidationError):
    """The session is archived, which makes it read-only."""


class ConversationNotFoundError(ChatMemoryError):
    """There is no session with this id."""

    def __init__(self, conversation_id: UUID | str) -> None:
        super().__init__(f"There is no session {conversation_id}.")
        self.conversation_id = conversation_id


class GenericMemoryError(ChatMemoryError):
    """The database or a skill failed; the cause is its ``__cause__``. The data is as before."""
