"""Talk to the assistant in the terminal."""

from sessions_app.inbound.chat_command import Command

__all__ = ["Command"]
