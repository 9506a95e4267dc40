"""Import opening hours, prices, questions or facts from a table."""

from sessions_app.memories.import_knowledge_command import Command

__all__ = ["Command"]
