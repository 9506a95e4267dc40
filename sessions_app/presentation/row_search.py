"""How staff find rows of endless lists: by whole ids, by the chat, by words as they are indexed.
Looking for a piece of a text in every row would read a million of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from sessions_app.models import Chat, InboundDelivery, Message, MessageEmbedding, OutboundPart
from sessions_app.recall.facade import (
    MAX_UNINDEXED_ROWS,
    messages_with,
    messages_with_parts,
    newest_messages_found,
)

MAX_CHATS = 1_000
MAX_MESSAGES = 2_000
# A WhatsApp address, or so much of a number that it can't be meant as a word.
_ADDRESS = re.compile(r"\S*@\S*|\+?\d{6,}")
# Providers' ids are long and hold no space.
_MIN_ID_LENGTH = 15


def messages_found(queryset: QuerySet[Message], term: str) -> QuerySet[Message]:
    """By a whole id (of the message, of its session, of its chat, the provider's), by the chat's
    address, else by words, and where none fits by a part of one."""
    asked = _asked(term)
    if not asked:
        return queryset
    if (key := _uuid(asked)) is not None:
        return queryset.filter(Q(pk=key) | Q(session=key) | Q(chat=key))
    # Long numbers are said, too: those of orders, say.
    if _ADDRESS.fullmatch(asked) and (chats := _chats_addressed(asked)):
        return queryset.filter(chat__in=chats)
    if _may_be_id(asked):
        same_id = list(
            Message.objects.filter(provider_message_id=asked).values_list("pk", flat=True)
        )
        if same_id:
            return queryset.filter(pk__in=same_id)
    wanted = messages_with(asked)
    # Not ``exists``: PostgreSQL takes every word for a frequent one, and would look for it from row
    # to row.
    if wanted is not None and newest_messages_found(Message.objects.all(), asked, 0, 1):
        return queryset.filter(wanted)
    part = messages_with_parts(Message.objects.all(), asked)
    return queryset.none() if part is None else queryset.filter(part)


def vectors_found(queryset: QuerySet[MessageEmbedding], term: str) -> QuerySet[MessageEmbedding]:
    """As their messages are found, of which the newest MAX_MESSAGES count."""
    if not _asked(term):
        return queryset
    messages = messages_found(Message.objects.order_by(MAX_UNINDEXED_ROWS), term)
    return queryset.filter(message__in=messages.values("pk")[:MAX_MESSAGES])


def deliveries_found(queryset: QuerySet[InboundDelivery], term: str) -> QuerySet[InboundDelivery]:
    """By a whole id of the provider's, or by the chat's address."""
    asked = _asked(term)
    if not asked:
        return queryset
    if _ADDRESS.fullmatch(asked):
        return queryset.filter(chat__in=_chats_addressed(asked))
    said = Message.objects.filter(provider_message_id=asked).values_list("pk", flat=True)
    same = Q(delivery_key=asked) | Q(subject_id=asked) | Q(message__in=list(said))
    return queryset.filter(same)


def parts_found(queryset: QuerySet[OutboundPart], term: str) -> QuerySet[OutboundPart]:
    """By a whole id (the turn's, the provider's), or by the chat's address."""
    asked = _asked(term)
    if not asked:
        return queryset
    if (key := _uuid(asked)) is not None:
        return queryset.filter(Q(pk=key) | Q(turn__turn_id=key))
    if _ADDRESS.fullmatch(asked):
        return queryset.filter(turn__chat__in=_chats_addressed(asked))
    return queryset.filter(provider_message_id=asked)


def _asked(term: str) -> str:
    return term.strip().replace("\x00", "")


def _uuid(asked: str) -> UUID | None:
    try:
        return UUID(asked)
    except ValueError:
        return None


def _may_be_id(asked: str) -> bool:
    return len(asked) >= _MIN_ID_LENGTH and not any(map(str.isspace, asked))


def _chats_addressed(asked: str) -> Sequence[Any]:
    """The ids themselves: the few chats then lead to their rows by the index."""
    asked = asked.lstrip("+")
    addressed = Q(whatsapp_chat__icontains=asked) | Q(addresses__address__icontains=asked)
    chats = Chat.objects.filter(addressed).order_by().values_list("pk", flat=True)
    return list(chats.distinct()[:MAX_CHATS])
