"""Save conversations from transcripts, and write them as transcripts."""

from sessions_app.transcripts.chat_memory_command import Command

__all__ = ["Command"]
