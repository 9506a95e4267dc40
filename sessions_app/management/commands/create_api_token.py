"""Make a token for the API."""

from sessions_app.tokens.create_api_token_command import Command

__all__ = ["Command"]
