"""Functions of takeovers for pages and REST resources of other packages."""

from sessions_app.takeover.admin.panel import reply_number, takeover_context

__all__ = [
    "reply_number",
    "takeover_context",
]
