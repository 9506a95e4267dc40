"""Compute until when WhatsApp allows messages to a chat, after its person last wrote."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from sessions_app.models import Chat, Message, Turn
from sessions_app.models.chats import Provider
from sessions_app.models.messages import Role

# A person who writes is in the newest session, or in the one before that just ended.
SESSIONS = 2
# A person whose last message to this number is further back than this has left its conversation.
LOOKED_AT = 1_000


def last_heard(chat: Chat, *, looked_at: int = LOOKED_AT) -> datetime | None:
    """Return when the chat last wrote to the number that answers it.

    In a group, anybody's message counts. The cost is the same for a million messages as for
    ten.
    """
    in_session = Message.objects.filter(session=OuterRef(OuterRef("pk"))).order_by("-order_num")
    messages = Message.objects.filter(
        session=OuterRef("pk"),
        order_num__gte=_lately(in_session, "order_num", looked_at),
        role=Role.USER,
        provider=chat.provider,
        number_id=chat.number_id,
    ).order_by("-order_num")
    newest = chat.sessions.order_by("-last_active").annotate(
        heard_at=Subquery(messages.values("timestamp")[:1])
    )
    times = list(newest.values_list("heard_at", flat=True)[:SESSIONS])
    # If memory is off, only the turn shows it.
    of_chat = Turn.objects.filter(chat=chat).order_by("-id")
    turns = of_chat.filter(
        id__gte=_lately(of_chat, "id", looked_at),
        by_hand=False,
        provider=chat.provider,
        number_id=chat.number_id,
    )
    times += list(turns.values_list("asked_at", flat=True)[:1])
    return max((at for at in times if at is not None), default=None)


def _lately(rows: QuerySet[Any], number: str, count: int) -> Coalesce:
    """Return the number at which the newest rows begin."""
    return Coalesce(Subquery(rows.values(number)[count - 1 : count]), 0)


def has_window(provider: str) -> bool:
    """Return whether the provider refuses what staff write once the window has closed.

    Green API works as WhatsApp on a phone does, which writes at any time.
    """
    return provider != str(Provider.GREEN)


def window_closes(chat: Chat, max_age: timedelta) -> datetime | None:
    """Return until when we may write; None if nobody has written yet."""
    last = last_heard(chat)
    return last + max_age if last is not None else None
