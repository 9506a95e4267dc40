"""Public face of legacy import: what other packages may use."""

from sessions_app.legacy_import.import_session import chat_for_address, chat_of_session

__all__ = [
    "chat_for_address",
    "chat_of_session",
]
