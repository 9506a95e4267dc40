"""Make the memory card of a session (seed 001)."""

from sessions_app.cards.generate_card_command import Command

__all__ = ["Command"]
