"""Decide who gets a text after a missed call."""

from datetime import datetime, timedelta

from memoryproject.foundation.integrations.whatsapp.events import MISSED, InboundMessage
from sessions_app.models import Chat, Turn

CALL = "call"
# The name of the text, and of the notice, after a missed call.
MISSED_CALL = "missed_call"
TEXTED_EVERY = timedelta(hours=1)


def call_is_texted(event: InboundMessage, chat: Chat, *, within: timedelta, now: datetime) -> bool:
    """Return whether the caller gets the text after a missed call: at most once an hour.

    ``within``: how old the call may be.
    """
    is_missed = event.metadata.get("call", {}).get("outcome") == MISSED
    if not is_missed or event.from_business or now - event.timestamp > within:
        return False
    pause = getattr(chat, "pause", None)
    if pause is not None and pause.holds(now):
        return False
    texted = Turn.objects.filter(chat=chat, created_at__gt=now - TEXTED_EVERY)
    return not texted.filter(context__notice=MISSED_CALL).exists()
