"""What pages and REST resources of other packages use of those of taking a chat over."""

from sessions_app.takeover.admin.panel import takeover_context

__all__ = [
    "takeover_context",
]
