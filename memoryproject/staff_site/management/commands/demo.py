"""Replay recorded WhatsApp conversations against the running server."""

from memoryproject.staff_site.demo.replay_command import Command

__all__ = ["Command"]
