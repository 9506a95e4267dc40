"""Serve MCP over stdin and stdout."""

from sessions_app.mcp.mcp_server_command import Command

__all__ = ["Command"]
