"""The address of the MCP server; clients may write it with or without a slash at its end."""

from __future__ import annotations

from django.urls import re_path

from sessions_app.mcp.view import McpView

urlpatterns = [re_path(r"^mcp/?$", McpView.as_view(), name="mcp")]
