"""The messages that memories come from, and the answers that recalled them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.urls import reverse

from sessions_app.models import Chat, Message, Turn, TurnReplay

# Only so many of the newest answers are searched for those that recalled a memory.
ANSWERS_LOOKED_AT = 500
ANSWERS_SHOWN = 10


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
        .select_related("turn")
        .only("recalled", "turn__asked_at")[:ANSWERS_SHOWN]
    )
    return [
        {
            "address": reverse("admin:sessions_app_turn_change", args=[replay.pk]),
            "at": replay.turn.asked_at,
            "score": _score(replay.recalled, str(memory_id)),
        }
        for replay in found
    ]


def _score(recalled: list[dict[str, Any]], memory_id: str) -> float | None:
    return next((each.get("score") for each in recalled if each.get("id") == memory_id), None)
