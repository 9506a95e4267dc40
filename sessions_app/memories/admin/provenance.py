"""The messages that memories come from, and the answers that recalled them."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.urls import reverse

from sessions_app.conversations.facade import chat_at, with_name
from sessions_app.models import Chat, Message, Turn, TurnReplay

# Only so many of the newest answers are searched for those that recalled a memory.
ANSWERS_LOOKED_AT = 500
ANSWERS_SHOWN = 10
# A name finds the memories of so many people, those who wrote last.
MAX_CHATS = 50
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w.]{1,64}")
# The number of a title such as "Dana Levi (+972 55-010-0101)", whose parts may be isolated.
_NUMBER = re.compile(r"\([\u2066-\u2069]*(\+[\d -]{7,24})[\u2066-\u2069]*\)$")


def message_places(message_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the links of existing messages, each in its chat."""
    found = Message.objects.filter(pk__in=list(message_ids)).values_list("pk", "chat_id")
    return {
        pk: f"{reverse('admin:sessions_app_chat_conversation', args=[chat_id])}?at={pk}#m-{pk}"
        for pk, chat_id in (found if message_ids else ())
    }


def chat_titles(chat_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return staff's names of these chats."""
    if not chat_ids:
        return {}
    return {chat.pk: str(chat) for chat in Chat.objects.filter(pk__in=list(chat_ids))}


def chat_short_names(chat_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the names of these chats; the address where a chat has none."""
    if not chat_ids:
        return {}
    return {chat.pk: chat.shown_name for chat in Chat.objects.filter(pk__in=list(chat_ids))}


def chats_called(text: str) -> list[UUID]:
    """Return the ids of the chats with this id or address, or with this part of a name or number.

    A title such as ``chat_titles`` gives counts as the address or number in it. The ids are values,
    so that the query for their memories uses an index.
    """
    with suppress(ValueError):
        return [UUID(text)]
    if address := _ADDRESS.search(text):
        exact = chat_at(address[0])
        return [] if exact is None else [exact.pk]
    number = _NUMBER.search(text)
    found = Chat.objects.filter(with_name(number[1] if number else text)).order_by("-updated_at")
    return list(found.values_list("pk", flat=True)[:MAX_CHATS])


def answers_that_recalled(memory_id: UUID, chat_id: UUID | None) -> list[dict[str, Any]]:
    """Return the newest answers for which the memory was recalled, each with its score then.

    Only the newest answers are searched, and only those of the memory's chat if it is visible
    to that chat alone.
    """
    turns = Turn.objects.order_by("-id")
    if chat_id is not None:
        turns = turns.filter(chat=chat_id)
    newest = turns.values("id")[:ANSWERS_LOOKED_AT]
    found = (
        TurnReplay.objects.filter(turn__in=newest, recalled__contains=[{"id": str(memory_id)}])
        .order_by("-turn_id")
        .defer("prompt", "shown", "left_out", "timings")
        .select_related("turn__chat")[:ANSWERS_SHOWN]
    )
    return [
        {
            "address": reverse("admin:sessions_app_turn_change", args=[replay.pk]),
            "at": replay.turn.asked_at,
            "chat": str(replay.turn.chat),
            "score": _score(replay.recalled, str(memory_id)),
        }
        for replay in found
    ]


def _score(recalled: list[dict[str, Any]], memory_id: str) -> float | None:
    return next((each.get("score") for each in recalled if each.get("id") == memory_id), None)
