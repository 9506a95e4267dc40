"""Manage the endpoints of outgoing webhooks."""

from sessions_app.webhook_endpoints.webhook_endpoint_command import Command

__all__ = ["Command"]
