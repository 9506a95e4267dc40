"""Conversations that are reviewed to their end, and those that need a person."""

from __future__ import annotations

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from sessions_app.inbox.read_markers import FROM_PEOPLE, SAID, news_there
from sessions_app.inbox.snooze import snoozes_in_force
from sessions_app.models import Chat, ChatPause, ReviewedMark, Snooze, Turn
from sessions_app.models.turns import WRONG_STATES

# More are shown as "99+".
MAX_ATTENTION = 100


def turns_gone_wrong() -> QuerySet[Turn]:
    """Return the failed and unconfirmed turns since the last review of their chat.

    The time of a review is the time when its page was made.
    """
    wrong = Turn.objects.filter(state__in=WRONG_STATES)
    over = wrong.annotate(over_at=Coalesce("finished_at", "created_at"))
    never = Q(chat__reviewed__isnull=True)
    return over.filter(never | Q(over_at__gt=F("chat__reviewed__reviewed_at")))


def pauses_in_force() -> QuerySet[ChatPause]:
    """Return the active pauses: the assistant doesn't answer in these chats."""
    in_force = Q(until__isnull=True) | Q(until__gt=timezone.now())
    return ChatPause.objects.filter(in_force)


def is_reviewed() -> Q:
    """Match chats that are reviewed up to their end, and were not put off since."""
    marked = Exists(ReviewedMark.objects.filter(chat=OuterRef("pk")))
    put_off = Exists(Snooze.objects.filter(chat=OuterRef("pk")))
    return Q(marked) & ~Q(put_off) & ~Q(news_there(ReviewedMark, SAID))


def needs_attention() -> Q:
    """Match chats that need a person.

    These are chats with failed or unconfirmed answers since the last review, chats with a paused
    assistant in which the person has written since, and chats that came back after a snooze. Chats
    that are put off aren't among them.
    """
    wrong = Q(pk__in=turns_gone_wrong().values("chat"))
    paused = Q(pk__in=pauses_in_force().values("chat"))
    put_off = Q(pk__in=Snooze.objects.values("chat"))
    now = Q(pk__in=snoozes_in_force().values("chat"))
    return (wrong | paused & Q(news_there(ReviewedMark, FROM_PEOPLE)) | put_off) & ~now


def attention_count() -> int:
    """Count the chats that need a person, at most MAX_ATTENTION."""
    found = Chat.objects.filter(activity__isnull=False).filter(needs_attention())
    return found[:MAX_ATTENTION].count()
