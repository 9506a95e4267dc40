"""Conversations that need a person: the assistant failed, or doesn't answer there."""

from __future__ import annotations

from django.db.models import Q

from sessions_app.inbox.chat_list import pauses_in_force, turns_gone_wrong
from sessions_app.inbox.read_markers import FROM_PEOPLE, news_there
from sessions_app.models import Chat, ReviewedMark

# More are shown as "99+".
MAX_ATTENTION = 100


def needs_attention() -> Q:
    """Match chats that need a person.

    These are chats with failed or unconfirmed answers since the last review, and chats with a
    paused assistant in which the person has written since.
    """
    wrong = Q(pk__in=turns_gone_wrong().values("chat"))
    paused = Q(pk__in=pauses_in_force().values("chat"))
    return wrong | paused & Q(news_there(ReviewedMark, FROM_PEOPLE))


def attention_count() -> int:
    """Count the chats that need a person, at most MAX_ATTENTION."""
    found = Chat.objects.filter(activity__isnull=False).filter(needs_attention())
    return found[:MAX_ATTENTION].count()
