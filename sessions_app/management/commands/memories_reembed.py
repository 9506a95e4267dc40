"""Switch the embedding model, or look after the vectors of the one in use."""

from sessions_app.embedding.memories_reembed_command import Command

__all__ = ["Command"]
