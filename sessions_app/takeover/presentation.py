"""What pages and REST resources of other packages use of those of taking a chat over."""

from sessions_app.takeover.admin.panel import reply_number, takeover_context

__all__ = [
    "reply_number",
    "takeover_context",
]
