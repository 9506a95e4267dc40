"""Memory documents, in the database or in a directory tree."""

from memories_app.memory_documents.manage_memory_command import Command

__all__ = ["Command"]
