"""Until when WhatsApp lets us write to a chat: a while after its person last wrote."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from sessions_app.models import Chat, Message, Turn
from sessions_app.models.messages import Role

# Who writes is in the newest session, or in the one before that ended a moment ago.
SESSIONS = 2
# Who wrote to another number of ours before so many messages is not in a talk with this one.
LOOKED_AT = 1_000


def last_heard(chat: Chat, *, looked_at: int = LOOKED_AT) -> datetime | None:
    """When the chat's person, or anybody in the group, last wrote to the number of ours by which
    the chat is answered. Reads as much in a chat of a million messages as in one of ten."""
    in_session = Message.objects.filter(session=OuterRef(OuterRef("pk"))).order_by("-order_num")
    said = Message.objects.filter(
        session=OuterRef("pk"),
        order_num__gte=_lately(in_session, "order_num", looked_at),
        role=Role.USER,
        provider=chat.provider,
        number_id=chat.number_id,
    ).order_by("-order_num")
    newest = chat.sessions.order_by("-last_active").annotate(
        heard_at=Subquery(said.values("timestamp")[:1])
    )
    heard = list(newest.values_list("heard_at", flat=True)[:SESSIONS])
    # Where memory is off the turn alone tells.
    of_chat = Turn.objects.filter(chat=chat).order_by("-id")
    turns = of_chat.filter(
        id__gte=_lately(of_chat, "id", looked_at),
        by_hand=False,
        provider=chat.provider,
        number_id=chat.number_id,
    )
    heard += list(turns.values_list("asked_at", flat=True)[:1])
    return max((at for at in heard if at is not None), default=None)


def _lately(rows: QuerySet[Any], number: str, count: int) -> Coalesce:
    """The number at which so many of the newest rows begin."""
    return Coalesce(Subquery(rows.values(number)[count - 1 : count]), 0)


def window_closes(chat: Chat, max_age: timedelta) -> datetime | None:
    """Until when we may write; None where nobody has written yet."""
    heard = last_heard(chat)
    return heard + max_age if heard is not None else None
