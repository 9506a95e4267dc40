"""Read from the settings which number sends the replies of staff."""

from __future__ import annotations

from django.conf import settings

from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from sessions_app.takeover.staff_reply import OwnNumber


def default_number() -> OwnNumber:
    """Return the number of WHATSAPP_PROVIDER, for chats that came by neither provider."""
    record = PROVIDERS.get(settings.WHATSAPP_PROVIDER)
    number_id = getattr(settings, record.number_setting) if record else ""
    return OwnNumber(settings.WHATSAPP_PROVIDER, number_id)
