"""Forget with proof."""

from sessions_app.forgetting.forget_command import Command

__all__ = ["Command"]
