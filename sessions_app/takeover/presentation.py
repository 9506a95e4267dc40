"""Presentation of takeovers: the names that pages and REST resources of other packages may use."""

from sessions_app.takeover.admin.panel import takeover_context

__all__ = [
    "takeover_context",
]
