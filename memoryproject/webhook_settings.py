"""The settings of the web server that serves only webhooks and health checks.

Its processes hold neither the staff's pages nor the API, and do nothing for sessions of staff.
"""

from memoryproject.settings import *  # noqa: F403
from memoryproject.settings import MIDDLEWARE as EVERYTHING

ROOT_URLCONF = "memoryproject.webhook_urls"
# The first lists all static files at the start, the second needs the addresses of the admin.
_FOR_STAFF = {
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "memoryproject.staff_site.accounts.middleware.StaffSessions",
}
MIDDLEWARE = [name for name in EVERYTHING if name not in _FOR_STAFF]
