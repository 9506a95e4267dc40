"""Conversations that are reviewed to their end, and those that need a person."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from sessions_app.inbox.read_markers import FROM_PEOPLE, SAID, news_since, news_there
from sessions_app.inbox.snooze import snoozes_in_force
from sessions_app.models import ChatActivity, ChatPause, ReviewedMark, Snooze, Turn
from sessions_app.models.turns import WRONG_STATES

# More are shown as "99+".
MAX_ATTENTION = 100


def turns_gone_wrong() -> QuerySet[Turn]:
    """Return the failed and unconfirmed turns since the last review of their chat.

    The time of a review is the time when its page was made.
    """
    wrong = Turn.objects.filter(state__in=WRONG_STATES)
    over = wrong.annotate(over_at=Coalesce("finished_at", "created_at"))
    # Not by way of the chats: all of them would be read to find the few.
    since = ReviewedMark.objects.filter(chat=OuterRef("chat"), reviewed_at__gte=OuterRef("over_at"))
    return over.filter(~Exists(since))


def pauses_in_force() -> QuerySet[ChatPause]:
    """Return the active pauses: the assistant doesn't answer in these chats."""
    in_force = Q(until__isnull=True) | Q(until__gt=Now())
    return ChatPause.objects.filter(in_force)


def is_reviewed(*, among_few: bool = False) -> Q:
    """Match chats that are reviewed up to their end, and were not put off since.

    ``among_few``: look at each chat by itself, because other filters leave few of them.
    """
    marked = Exists(ReviewedMark.objects.filter(chat=OuterRef("pk")))
    put_off = Exists(Snooze.objects.filter(chat=OuterRef("pk")))
    news = news_there(SAID, chat="pk") if among_few else news_since(ReviewedMark, SAID)
    return Q(marked) & ~Q(put_off) & ~Q(news)


def needs_attention() -> Q:
    """Match chats that need a person.

    These are chats with failed or unconfirmed answers since the last review, chats with a paused
    assistant in which the person has written since, and chats that came back after a snooze. Chats
    that are put off aren't among them.
    """
    return Q(pk__in=_waiting()) & ~Q(pk__in=snoozes_in_force().values("chat"))


def attention_count() -> int:
    """Count the chats that need a person, at most MAX_ATTENTION."""
    with connection.cursor() as cursor:
        cursor.execute(*_attention_query())
        return len(cursor.fetchall())


@cache
def _attention_query() -> tuple[str, tuple[Any, ...]]:
    """Return the query of attention_count with its parameters, which never change.

    Every staff page asks it, and Django needs longer to write it than PostgreSQL to answer it.
    """
    found = ChatActivity.objects.filter(needs_attention()).order_by().values("pk")
    query, parameters = found[:MAX_ATTENTION].query.sql_with_params()
    return query, parameters


def _waiting() -> QuerySet[Turn, dict[str, Any]]:
    """Return the chats that wait for a person, by their keys.

    It begins with the few turns, pauses and snoozes, never with all chats.
    """
    wrong = turns_gone_wrong().order_by().values("chat")
    written = news_there(FROM_PEOPLE, chat="chat")
    paused = pauses_in_force().filter(written).order_by().values("chat")
    return wrong.union(paused, Snooze.objects.order_by().values("chat"))
