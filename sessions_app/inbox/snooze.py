"""Put conversations off until a time; they come back by themselves."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.inbox.move_markers import ReviewError, chats_lock, chats_record
from sessions_app.inbox.read_markers import FROM_PEOPLE, SAID, news_since, news_there
from sessions_app.models import ChatActivity, ChatPause, Message, ReviewedMark, Snooze, Turn
from sessions_app.models.turns import WRONG_STATES

MAX_SNOOZE = timedelta(days=366)


def snoozes_in_force() -> QuerySet[Snooze]:
    """Return the snoozes whose time isn't over and whose person hasn't written since."""
    written = Message.objects.filter(
        chat=OuterRef("chat"), role__in=FROM_PEOPLE, received_at__gt=OuterRef("since")
    )
    return Snooze.objects.filter(~Exists(written), until__gt=Now())


def chats_snooze(
    *,
    user: User,
    chat_ids: Collection[UUID],
    until: datetime,
    actor: Actor,
    seen_at: datetime | None = None,
) -> int:
    """Put these chats off until a time; return how many.

    ``seen_at``: when the page was made on which the user decided. Messages since then bring the
    chat back at once. Raises ReviewError for a time that is over or more than a year away.
    """
    now = timezone.now()
    if until <= now:
        raise ReviewError(_("That time is over."))
    if until > now + MAX_SNOOZE:
        raise ReviewError(_("That is more than a year away."))
    since = min(seen_at or now, now)
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        Snooze.objects.bulk_create(
            [Snooze(chat_id=key, since=since, until=until, snoozed_by=user) for key in chats],
            update_conflicts=True,
            unique_fields=["chat"],
            update_fields=["since", "until", "snoozed_by"],
        )
        chats_record("chat.snooze", chats, actor, {"until": until.isoformat()})
    return len(chats)


def chats_unsnooze(*, chat_ids: Collection[UUID], actor: Actor) -> int:
    """Bring these chats back now; return how many were put off."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        snoozed = Snooze.objects.filter(chat__in=chats)
        woken = sorted(snoozed.values_list("chat", flat=True))
        snoozed.delete()
        chats_record("chat.unsnooze", woken, actor)
    return len(woken)


# Conversations that are reviewed to their end, and those that need a person.


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
