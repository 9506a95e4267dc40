"""Read documents into memory, from the command line."""

from sessions_app.documents.documents_import_command import Command

__all__ = ["Command"]
