"""Read from the settings which number sends the replies of staff."""

from __future__ import annotations

from django.conf import settings

from sessions_app.takeover.staff_reply import OwnNumber


def default_number() -> OwnNumber:
    """Return the number of WHATSAPP_PROVIDER, for chats that came by neither provider."""
    numbers = {
        "cloud": settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID,
        "green": settings.GREEN_API_ID_INSTANCE,
    }
    provider = settings.WHATSAPP_PROVIDER
    return OwnNumber(provider, numbers.get(provider, ""))
