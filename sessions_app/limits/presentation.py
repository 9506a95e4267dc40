"""Functions of the limits for pages of other packages."""

from sessions_app.limits.admin.access_actions import AccessActions
from sessions_app.limits.admin.access_panel import access_context, access_urls

__all__ = [
    "AccessActions",
    "access_context",
    "access_urls",
]
