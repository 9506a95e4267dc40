"""Functions of the limits for pages of other packages."""

from sessions_app.limits.access_panel import AccessActions, access_context, access_urls

__all__ = [
    "AccessActions",
    "access_context",
    "access_urls",
]
