"""What pages of other packages use of those of the limits."""

from sessions_app.limits.admin.access_actions import AccessActions
from sessions_app.limits.admin.access_panel import access_context, access_urls

__all__ = [
    "AccessActions",
    "access_context",
    "access_urls",
]
