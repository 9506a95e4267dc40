"""Until when WhatsApp lets us write to a chat: a while after its person last wrote."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery

from sessions_app.models import Chat, Message, Turn
from sessions_app.models.messages import Role

# Who writes is in the newest session, or in the one before that ended a moment ago.
SESSIONS = 2


def last_heard(chat: Chat) -> datetime | None:
    """When the chat's person, or anybody in the group, last wrote to the number of ours by which
    the chat is answered. Reads as much in a chat of a million messages as in one of ten."""
    said = Message.objects.filter(
        session=OuterRef("pk"),
        role=Role.USER,
        provider=chat.provider,
        number_id=chat.number_id,
    ).order_by("-order_num")
    newest = chat.sessions.order_by("-last_active").annotate(
        heard_at=Subquery(said.values("timestamp")[:1])
    )
    heard = list(newest.values_list("heard_at", flat=True)[:SESSIONS])
    # Where memory is off the turn alone tells.
    turns = Turn.objects.filter(
        chat=chat, by_hand=False, provider=chat.provider, number_id=chat.number_id
    )
    heard += list(turns.order_by("-id").values_list("asked_at", flat=True)[:1])
    return max((at for at in heard if at is not None), default=None)


def window_closes(chat: Chat, max_age: timedelta) -> datetime | None:
    """Until when we may write; None where nobody has written yet."""
    heard = last_heard(chat)
    return heard + max_age if heard is not None else None
